/* data/scorers.h: the named scorers: one list for help, messages and ipw.score
 * (core.data.scorers). */
#ifndef IPW_DATA_SCORERS_H
#define IPW_DATA_SCORERS_H

#define IPW_SCORERS "boxed, choice, code, contains, exact, f1, gaia, judge, numeric"

#endif

/* base/texts.h: short texts that live as long as one owner, in a few blocks of memory.
 *
 * Holds copies; ipw_texts_release() frees them all.  A text that was added lately is found again
 * and shared, because the texts of one owner (names of models, words for outcomes) repeat.  Zero
 * the struct to start. */
#ifndef IPW_BASE_TEXTS_H
#define IPW_BASE_TEXTS_H

struct ipw_texts {
    struct ipw_texts_block *first; /* the one that texts are added to */
};

const char *ipw_texts_keep(struct ipw_texts *texts, const char *text); /* NULL gives NULL */
void ipw_texts_release(struct ipw_texts *texts);

#endif

/* The functions of libcurl that src/io calls.  The library is loaded with the first of them: see
 * base/library.h. */
#include <curl/curl.h>
#include <stdarg.h>

#include "base/library.h"

static struct ipw_library curl = IPW_LIBRARY(IPW_CURL_FILE);

/* Macros of the header that check arguments. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define CURL_FUNCTION(type, name, params, args)                                                    \
    IPW_LIBRARY_FUNCTION(&curl, type, name, params, args)

CURL_FUNCTION(CURLcode, curl_global_init, (long flags), (flags))
CURL_FUNCTION(void, curl_global_cleanup, (void), ())
CURL_FUNCTION(void, curl_free, (void *p), (p))
CURL_FUNCTION(CURL *, curl_easy_init, (void), ())
CURL_FUNCTION(void, curl_easy_cleanup, (CURL * easy), (easy))
CURL_FUNCTION(CURLcode, curl_easy_perform, (CURL * easy), (easy))
CURL_FUNCTION(const char *, curl_easy_strerror, (CURLcode code), (code))
CURL_FUNCTION(CURLM *, curl_multi_init, (void), ())
CURL_FUNCTION(CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi))
CURL_FUNCTION(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy))
CURL_FUNCTION(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL *easy), (multi, easy))
CURL_FUNCTION(CURLMsg *, curl_multi_info_read, (CURLM * multi, int *left), (multi, left))
CURL_FUNCTION(CURLMcode, curl_multi_socket_action,
              (CURLM * multi, curl_socket_t socket, int events, int *running),
              (multi, socket, events, running))
CURL_FUNCTION(CURLMcode, curl_multi_perform, (CURLM * multi, int *running), (multi, running))
CURL_FUNCTION(CURLcode, curl_easy_pause, (CURL * easy, int what), (easy, what))
CURL_FUNCTION(const char *, curl_multi_strerror, (CURLMcode code), (code))
CURL_FUNCTION(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *line),
              (list, line))
CURL_FUNCTION(void, curl_slist_free_all, (struct curl_slist * list), (list))
CURL_FUNCTION(CURLU *, curl_url, (void), ())
CURL_FUNCTION(void, curl_url_cleanup, (CURLU * url), (url))
/* Constant since libcurl 8. */
typedef __typeof__(_Generic(&curl_url_get, CURLUcode (*)(CURLU *, CURLUPart, char **, unsigned int)
                            : (CURLU *)NULL, default
                            : (const CURLU *)NULL)) readable_url;
CURL_FUNCTION(CURLUcode, curl_url_get,
              (readable_url url, CURLUPart what, char **part, unsigned int flags),
              (url, what, part, flags))
CURL_FUNCTION(CURLUcode, curl_url_set,
              (CURLU * url, CURLUPart what, const char *part, unsigned int flags),
              (url, what, part, flags))
CURL_FUNCTION(const char *, curl_url_strerror, (CURLUcode code), (code))

/* ---- functions with a last argument of several types ---- */

/* The type of an option's argument follows from its number. */
#define SET(real, handle, option, last)                                                            \
    switch ((option) / 10000 * 10000) {                                                            \
    case CURLOPTTYPE_LONG: return real(handle, option, va_arg(last, long));                        \
    case CURLOPTTYPE_OFF_T: return real(handle, option, va_arg(last, curl_off_t));                 \
    case CURLOPTTYPE_FUNCTIONPOINT: return real(handle, option, va_arg(last, function));           \
    default: return real(handle, option, va_arg(last, void *));                                    \
    }

typedef void (*function)(void);
typedef CURLcode (*set_easy)(CURL *easy, CURLoption option, ...);
typedef CURLMcode (*set_multi)(CURLM *multi, CURLMoption option, ...);
typedef CURLcode (*get_easy)(CURL *easy, CURLINFO info, ...);

static CURLcode easy_set(set_easy real, CURL *easy, CURLoption option, va_list last)
{
    SET(real, easy, option, last)
}

static CURLMcode multi_set(set_multi real, CURLM *multi, CURLMoption option,
                           va_list last){SET(real, multi, option, last)}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    static _Atomic(set_easy) known;
    CURLcode code;
    va_list last;

    if (!known) known = (set_easy)ipw_library_function(&curl, "curl_easy_setopt");
    va_start(last, option);
    code = easy_set(known, easy, option, last);
    va_end(last);
    return code;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    static _Atomic(set_multi) known;
    CURLMcode code;
    va_list last;

    if (!known) known = (set_multi)ipw_library_function(&curl, "curl_multi_setopt");
    va_start(last, option);
    code = multi_set(known, multi, option, last);
    va_end(last);
    return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    static _Atomic(get_easy) known;
    va_list last;
    void *to;

    if (!known) known = (get_easy)ipw_library_function(&curl, "curl_easy_getinfo");
    va_start(last, info);
    to = va_arg(last, void *);
    va_end(last);
    return known(easy, info, to);
}

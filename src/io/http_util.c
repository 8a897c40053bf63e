#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "io/http_priv.h"
#include "io/url.h"

static int bad_url(struct ipw_err *err, const char *url, const char *why)
{
    struct ipw_buf plain = IPW_BUF(2 * IPW_KIB);

    ipw_url_plain(&plain, url);
    ipw_fail(err, IPW_EINVAL, "the address '%s' %s", ipw_buf_str(&plain), why);
    ipw_buf_release(&plain);
    return IPW_EINVAL;
}

int ipw_http_address_get(struct http_address **out, struct ipw_http *http, const char *url,
                         bool raw, struct ipw_err *err)
{
    struct http_address *address = http->last_address;
    char *scheme = NULL, *host = NULL;
    CURLU *parts;
    CURLUcode code;
    int rc = 0;

    if (address && address->raw == raw && strcmp(url, address->text) == 0) {
        address->refs++;
        *out = address;
        return 0;
    }
    if (!strstr(url, "://")) return bad_url(err, url, "does not start with http:// or https://");
    parts = curl_url();
    if (!parts) IPW_BUG("out of memory");
    code = curl_url_set(parts, CURLUPART_URL, url,
                        CURLU_NON_SUPPORT_SCHEME | (raw ? CURLU_PATH_AS_IS : 0));
    if (code) {
        rc = bad_url(err, url, "is not a valid URL");
        if (err) {
            size_t n = strlen(err->text);
            snprintf(err->text + n, sizeof err->text - n, " (%s)", curl_url_strerror(code));
        }
    } else if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
               (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)) {
        rc = bad_url(err, url, "does not start with http:// or https://");
    } else if (curl_url_get(parts, CURLUPART_HOST, &host, 0) || !*host) {
        rc = bad_url(err, url, "names no host");
    }
    curl_free(scheme);
    curl_free(host);
    if (rc) {
        curl_url_cleanup(parts);
        return rc;
    }
    address = ipw_malloc(sizeof *address);
    *address =
        (struct http_address){.refs = 2, .raw = raw, .text = ipw_strdup(url), .parts = parts};
    ipw_http_address_release(http->last_address);
    http->last_address = address;
    *out = address;
    return 0;
}

void ipw_http_address_release(struct http_address *address)
{
    if (!address || --address->refs) return;
    curl_url_cleanup(address->parts);
    free(address->text);
    free(address);
}

void ipw_http_address_use(struct ipw_http_call *call, struct http_address *address)
{
    const char *proxy;

    if (call->address == address) {
        ipw_http_address_release(address);
        return;
    }
    curl_easy_setopt(call->easy, CURLOPT_URL, address->text); /* what libcurl says it asks for */
    curl_easy_setopt(call->easy, CURLOPT_CURLU, address->parts);
    /* The proxy's password is no longer in the environment, where libcurl would look.  An empty
     * proxy saves libcurl that look at every request. */
    proxy = call->http->proxies ? ipw_url_proxy_setting(address->text) : NULL;
    curl_easy_setopt(call->easy, CURLOPT_PROXY, proxy ? proxy : "");
    ipw_http_address_release(call->address);
    call->address = address;
}

/* --- header lines ---------------------------------------------------------------------------- */

bool ipw_http_is_token(const char *s)
{
    if (!*s) return false;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c <= ' ' || c >= 0x7F || strchr("()<>@,;:\\\"/[]?={}", c)) return false;
    }
    return true;
}

static int check_headers(const struct ipw_http_request *request, struct ipw_err *err)
{
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct ipw_http_header *h = &request->headers[i];
        struct ipw_buf name = IPW_BUF(512);
        const char *why = NULL;

        /* Do not show the value: it may be a key. */
        if (!h->name || !ipw_http_is_token(h->name))
            why = "has a name that is not allowed";
        else if (!h->value)
            why = "has no value";
        else if (strpbrk(h->value, "\r\n"))
            why = "has a line break in its value";
        if (!why) continue;
        if (h->name) ipw_text_printable(&name, h->name, strlen(h->name), 60);
        ipw_fail(err, IPW_EINVAL, "the HTTP header '%s' %s", ipw_buf_str(&name), why);
        ipw_buf_release(&name);
        return IPW_EINVAL;
    }
    return 0;
}

/* libcurl's form: "Name: value", or "Name;" for an empty value. */
static bool is_line_of(const char *line, const struct ipw_http_header *h)
{
    size_t n = strlen(h->name);

    if (strncmp(line, h->name, n) != 0) return false;
    if (!*h->value) return line[n] == ';' && !line[n + 1];
    return line[n] == ':' && line[n + 1] == ' ' && strcmp(line + n + 2, h->value) == 0;
}

static bool is_same(const struct header_set *set, const struct ipw_http_request *request, int body)
{
    const struct curl_slist *line = set->lines;

    if (set->n != request->n_headers || (int)set->body != body) return false;
    for (size_t i = 0; i < set->n; i++, line = line->next) {
        if (!is_line_of(line->data, &request->headers[i])) return false;
    }
    return true;
}

static void add_line(struct header_set *set, const char *line)
{
    struct curl_slist *lines = curl_slist_append(set->lines, line);

    if (!lines) IPW_BUG("out of memory");
    set->lines = lines;
}

/* Does the header belong to one connection, so that a proxy must not hand it on? */
static bool is_of_connection(const char *name)
{
    static const char *const names[] = {"Connection", "Content-Length",    "Host",
                                        "Keep-Alive", "Proxy-Connection",  "TE",
                                        "Trailer",    "Transfer-Encoding", "Upgrade"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

int ipw_http_headers_get(struct header_set **out, struct ipw_http *http,
                         const struct ipw_http_request *request, struct ipw_err *err)
{
    size_t body_len = request->lend_body ? request->lend_body->len : request->body_len;
    int body = request->body_in_pieces                 ? LARGE_BODY
               : !request->body && !request->lend_body ? NO_BODY
               : body_len < HTTP_LARGE_BODY            ? SMALL_BODY
                                                       : LARGE_BODY;
    bool has_type = false, has_agent = false, has_encoding = false, has_accept = false;
    struct header_set *set = http->last_headers;
    int rc;

    for (size_t i = 0; i < request->n_headers; i++) {
        if (!request->headers[i].name || !request->headers[i].value)
            return check_headers(request, err);
    }
    if (set && !request->raw && is_same(set, request, body)) {
        set->refs++;
        *out = set;
        return 0;
    }
    rc = check_headers(request, err);
    if (rc) return rc;
    set = ipw_calloc(1, sizeof *set);
    set->n = request->n_headers;
    set->body = body;
    for (size_t i = 0; i < request->n_headers; i++) {
        const struct ipw_http_header *h = &request->headers[i];
        char *line;

        if (request->raw && is_of_connection(h->name)) continue;
        line = *h->value ? ipw_asprintf("%s: %s", h->name, h->value) : ipw_asprintf("%s;", h->name);
        add_line(set, line);
        free(line);
        has_type |= strcasecmp(h->name, "Content-Type") == 0;
        has_accept |= strcasecmp(h->name, "Accept") == 0;
        has_agent |= strcasecmp(h->name, "User-Agent") == 0;
        has_encoding |= strcasecmp(h->name, "Accept-Encoding") == 0;
    }
    if (!has_encoding) add_line(set, "Accept-Encoding:");
    if (request->raw && !has_accept) add_line(set, "Accept:");
    if (!has_agent && !request->raw)
        add_line(set, http->user_agent); /* cheaper than CURLOPT_USERAGENT */
    /* A line without a value removes a header that libcurl would add: "Expect: 100-continue", or a
     * form's content type. */
    if (body == LARGE_BODY) add_line(set, "Expect:");
    if (body != NO_BODY && !has_type) add_line(set, "Content-Type:");
    *out = set;
    set->refs = 1;
    if (request->raw) return 0; /* of a client of its own: it will hardly come again */
    set->refs = 2;              /* one for the caller, one for the pool's last set */
    if (http->last_headers) ipw_http_headers_release(http->last_headers);
    http->last_headers = set;
    return 0;
}

void ipw_http_headers_release(struct header_set *set)
{
    if (!set || --set->refs) return;
    curl_slist_free_all(set->lines);
    free(set);
}

const char *ipw_http_field(const struct ipw_http_head *head, const char *name)
{
    for (size_t i = head ? head->n_fields : 0; i > 0; i--)
        if (strcasecmp(head->fields[i - 1].name, name) == 0) return head->fields[i - 1].value;
    return "";
}

/* --- the rest -------------------------------------------------------------------------------- */

enum ipw_http_end ipw_http_end_of(CURLcode code, bool any_answer)
{
    switch (code) {
    case CURLE_OK: return IPW_HTTP_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return IPW_HTTP_DNS;
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED: return IPW_HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT: return IPW_HTTP_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED: return IPW_HTTP_TLS;
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: return any_answer ? IPW_HTTP_CUT : IPW_HTTP_RESET;
    case CURLE_PARTIAL_FILE: return IPW_HTTP_CUT;
    default: return IPW_HTTP_PROTOCOL;
    }
}

void ipw_http_escape(struct ipw_buf *out, const char *s, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            ipw_buf_addc(out, (char)c);
        } else {
            char triple[3] = {'%', digits[c >> 4], digits[c & 15]};
            ipw_buf_add(out, triple, 3);
        }
    }
}

static const char *end_text(const struct ipw_http_call *call, enum ipw_http_end end,
                            enum ipw_http_deadline deadline)
{
    switch (end) {
    case IPW_HTTP_TIMEOUT:
        switch (deadline) {
        case IPW_HTTP_CONNECT_DEADLINE: return "no connection within the connect deadline";
        case IPW_HTTP_FIRST_BYTE_DEADLINE: return "no answer within the first-byte deadline";
        case IPW_HTTP_IDLE_DEADLINE: return "the answer stalled for longer than the idle deadline";
        default: return "not finished within the total deadline";
        }
    case IPW_HTTP_TOO_LARGE:
        return call->header_bytes > HTTP_HEADERS_MAX ? "the answer's headers are over 64 kB"
                                                     : "the answer's body is over its ceiling";
    case IPW_HTTP_ABORTED: return "stopped by its reader";
    case IPW_HTTP_RESET: return "the connection broke before any answer";
    case IPW_HTTP_CUT: return "the answer broke off";
    case IPW_HTTP_REFUSED:
        return call->refused ? "its address is not a public one" : "no connection";
    case IPW_HTTP_DNS: return "the host name is not known";
    case IPW_HTTP_TLS: return "no secure connection";
    case IPW_HTTP_PROTOCOL:
        return ipw_url_host_is_ascii(call->address->text)
                   ? "not an HTTP answer"
                   : "its host has letters outside ASCII: write it as DNS does (xn--...)";
    case IPW_HTTP_OK: break;
    }
    return "";
}

void ipw_http_describe_end(struct ipw_buf *out, const struct ipw_http_call *call,
                           enum ipw_http_end end, enum ipw_http_deadline deadline)
{
    bool curl_knows = call->curl_error[0] && !call->refused && end != IPW_HTTP_TIMEOUT &&
                      end != IPW_HTTP_ABORTED && end != IPW_HTTP_TOO_LARGE;

    ipw_url_plain(out, call->address->text);
    ipw_buf_addf(out, ": %s", end_text(call, end, deadline));
    if (curl_knows && !(call->begun && call->sends > 1))
        ipw_buf_addf(out, " (%s)", call->curl_error);
}

/* Several base URLs: whose turn it is, and which are left out for now. */
#include "llm/client_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

static const int64_t FIRST_PAUSE_NS = IPW_NS_PER_S, MOST_PAUSE_NS = 60 * IPW_NS_PER_S;

/* llama-server's and vLLM's health pages stand beside /v1, not below it. */
static char *health_of(const char *url)
{
    size_t n = strlen(url);

    if (n > 3 && strcmp(url + n - 3, "/v1") == 0) n -= 3;
    return ipw_asprintf("%.*s/health", (int)n, url);
}

int ipw_llm_site_init(struct ipw_llm_site *site, const char *base_url, struct ipw_err *err)
{
    struct ipw_buf url = IPW_BUF(8 * IPW_KIB);
    int rc = ipw_llm_normalise_url(&url, base_url, err);

    *site = (struct ipw_llm_site){0};
    if (rc) {
        ipw_buf_release(&url);
        return rc;
    }
    site->url = ipw_buf_take(&url, NULL);
    site->chat_url = ipw_asprintf("%s/chat/completions", site->url);
    site->models_url = ipw_asprintf("%s/models", site->url);
    site->health_url = health_of(site->url);
    return 0;
}

void ipw_llm_site_release(struct ipw_llm_site *site)
{
    free(site->url);
    free(site->chat_url);
    free(site->models_url);
    free(site->health_url);
}

static bool is_up(const struct ipw_llm_site *site, int64_t now_ns)
{
    return site->down_until_ns <= now_ns;
}

size_t ipw_llm_site_pick(struct ipw_llm *llm, int64_t now_ns, int avoid)
{
    size_t best = llm->next_site;
    int best_rank = 4;

    if (llm->n_sites == 1) return 0;
    for (size_t k = 0; k < llm->n_sites; k++) {
        size_t i = (llm->next_site + k) % llm->n_sites;
        int rank = (is_up(&llm->sites[i], now_ns) ? 0 : 2) + ((int)i == avoid);
        bool sooner = rank >= 2 && rank == best_rank &&
                      llm->sites[i].down_until_ns < llm->sites[best].down_until_ns;

        if (rank >= best_rank && !sooner) continue;
        best = i;
        best_rank = rank;
    }
    llm->next_site = (best + 1) % llm->n_sites;
    return best;
}

bool ipw_llm_site_other(const struct ipw_llm *llm, int64_t now_ns, size_t but)
{
    for (size_t i = 0; i < llm->n_sites; i++)
        if (i != but && is_up(&llm->sites[i], now_ns)) return true;
    return false;
}

void ipw_llm_site_failed(struct ipw_llm *llm, size_t i, int64_t now_ns, const char *why)
{
    struct ipw_llm_site *site = &llm->sites[i];

    if (llm->n_sites == 1 || !is_up(site, now_ns)) return; /* calls under way tell no news */
    site->down_for_ns = site->down_for_ns ? 2 * site->down_for_ns : FIRST_PAUSE_NS;
    if (site->down_for_ns > MOST_PAUSE_NS) site->down_for_ns = MOST_PAUSE_NS;
    site->down_until_ns = now_ns + site->down_for_ns;
    ipw_log(IPW_LOG_WARN, "%s (left out for %.0f s)", why, ipw_ns_to_s(site->down_for_ns));
}

void ipw_llm_site_served(struct ipw_llm *llm, size_t i)
{
    struct ipw_llm_site *site = &llm->sites[i];

    if (site->down_for_ns) ipw_log(IPW_LOG_INFO, "%s answers again", site->url);
    site->down_for_ns = site->down_until_ns = 0;
    site->loading_since_ns = 0;
}

int64_t ipw_llm_loading_since_ns(const struct ipw_llm *llm)
{
    int64_t since_ns = 0;

    for (size_t i = 0; i < llm->n_sites; i++) {
        int64_t ns = llm->sites[i].loading_since_ns;

        if (ns && (!since_ns || ns < since_ns)) since_ns = ns;
    }
    return since_ns;
}

int ipw_llm_can_force(const struct ipw_llm *llm, struct ipw_err *err)
{
    for (size_t i = 0; i < llm->n_sites; i++) {
        enum ipw_llm_server server = llm->sites[i].server;

        if (server == IPW_LLM_OLLAMA || server == IPW_LLM_OPENAI)
            return ipw_fail(err, IPW_EINVAL,
                            "%s: %s has no way to force the length of a reply (llama.cpp, vLLM and "
                            "SGLang have)",
                            llm->sites[i].url, server == IPW_LLM_OLLAMA ? "Ollama" : "OpenAI");
    }
    return 0;
}

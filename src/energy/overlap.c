#include "energy/overlap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LOCAL SIZE_MAX /* machine of all sources that are not remote */
#define PLUS  " + "    /* between the parts of a basis */

struct chooser {
    struct ipw_overlap_item *items;
    size_t n;
    bool *chosen;
    enum ipw_domain domain;
    char *basis;
};

/* clang-format off */
/* Scopes in order of preference; -1 ends. */
static const int orders[IPW_DOMAIN_COUNT][5] = {
    [IPW_DOMAIN_GPU]     = {IPW_SCOPE_DEVICE, IPW_SCOPE_MODULE, IPW_SCOPE_RAIL, -1, -1},
    [IPW_DOMAIN_CPU]     = {IPW_SCOPE_PACKAGE, IPW_SCOPE_DEVICE, IPW_SCOPE_MODULE, IPW_SCOPE_RAIL, -1},
    [IPW_DOMAIN_DRAM]    = {IPW_SCOPE_DRAM, IPW_SCOPE_DEVICE, IPW_SCOPE_RAIL, -1, -1},
    [IPW_DOMAIN_MACHINE] = {IPW_SCOPE_MACHINE, IPW_SCOPE_PLATFORM, IPW_SCOPE_MODULE, IPW_SCOPE_RAIL, -1},
};
/* clang-format on */

static size_t machine_of(const struct ipw_overlap_item *item)
{
    return item->channel->remote ? item->machine : LOCAL;
}

static bool is_energy(const struct ipw_overlap_item *item)
{
    return !item->rejected && item->channel->kind < IPW_CHANNEL_METRIC;
}

static IPW_PRINTF(2, 3) void say(struct chooser *c, const char *fmt, ...)
{
    size_t used = strlen(c->basis);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->basis + used, IPW_BASIS_BYTES - used, fmt, ap);
    va_end(ap);
}

static bool in_group(const struct chooser *c, size_t i, size_t machine, enum ipw_scope scope)
{
    const struct ipw_overlap_item *item = &c->items[i];

    return is_energy(item) && item->channel->domain == c->domain && item->channel->scope == scope &&
           machine_of(item) == machine;
}

/* A source never has psys in its own sum, because its package is in there.  Whether psys is the
 * machine is decided here. */
static bool source_never_chooses(enum ipw_scope scope) { return scope == IPW_SCOPE_PLATFORM; }

/* Describes n chosen channels in words. */
static void say_what(struct chooser *c, enum ipw_scope scope, size_t n, const char *source,
                     bool gauges, size_t machine)
{
    static const char *const one[] = {"GPU",    "package",       "core",
                                      "uncore", "memory zone",   "platform",
                                      "module", "machine meter", "rail"};
    const char *noun =
        scope == IPW_SCOPE_DEVICE && c->domain != IPW_DOMAIN_GPU ? "device" : one[scope];

    say(c, "%s%s%zu %s%s (%s%s)", c->basis[0] ? PLUS : "", machine == LOCAL ? "" : "remote: ", n,
        noun, n == 1 ? "" : "s", source, gauges ? ", power integrated" : "");
    if (scope == IPW_SCOPE_PLATFORM) say(c, ", perhaps without discrete GPUs");
    if (scope == IPW_SCOPE_MODULE && c->domain != IPW_DOMAIN_MACHINE)
        say(c, ", the whole module: CPU and GPU");
}

/* Length of the part of a device's text that identifies it: up to the first blank. */
static size_t identity_len(const char *device) { return strcspn(device, " "); }

static bool same_board(const struct ipw_channel *a, const struct ipw_channel *b)
{
    size_t n = identity_len(a->device);

    return n > 0 && n == identity_len(b->device) && !strncmp(a->device, b->device, n);
}

/* A device counts once: by its counter if that is usable, else by its gauge. */
static bool better_known(const struct chooser *c, size_t i, size_t machine)
{
    const struct ipw_overlap_item *item = &c->items[i];

    for (size_t k = 0; k < c->n; k++) {
        const struct ipw_overlap_item *other = &c->items[k];
        bool counter = other->channel->kind == IPW_CHANNEL_COUNTER;

        if (k == i || !in_group(c, k, machine, IPW_SCOPE_DEVICE)) continue;
        if (!same_board(item->channel, other->channel)) continue;
        if (counter != (item->channel->kind == IPW_CHANNEL_COUNTER)) {
            if (counter && (other->channel->in_sum || c->chosen[k])) return true;
        } else if (k < i) {
            return true;
        }
    }
    return false;
}

/* A gauge that its source left out is used if the device's counter was rejected. */
static bool counter_rejected(const struct chooser *c, size_t i)
{
    for (size_t k = 0; k < c->n; k++) {
        const struct ipw_overlap_item *other = &c->items[k];

        if (other->rejected && other->channel->kind == IPW_CHANNEL_COUNTER &&
            other->channel->in_sum && other->channel->domain == c->domain &&
            other->index == c->items[i].index && same_board(other->channel, c->items[i].channel))
            return true;
    }
    return false;
}

/* A meter outside the machine is preferred to sensors inside.  The battery comes last, because it
 * is only right without mains power. */
static int rank(const char *source)
{
    if (!strcmp(source, "log") || !strcmp(source, "powerlog") || !strcmp(source, "exec")) return 0;
    return !strcmp(source, "battery") ? 2 : 1;
}

/* A meter on the supply of all GPUs covers them; then the GPUs of other sources do not count. */
static bool outside_meter(const struct chooser *c, size_t machine)
{
    for (size_t i = 0; i < c->n; i++)
        if (in_group(c, i, machine, IPW_SCOPE_DEVICE) && c->items[i].channel->in_sum &&
            rank(c->items[i].source) == 0)
            return true;
    return false;
}

static bool choose_boards(struct chooser *c, size_t machine)
{
    size_t n = 0, gauges = 0;
    const char *source = NULL;
    bool mixed = false, mig = false, outside = outside_meter(c, machine);

    for (size_t i = 0; i < c->n; i++) {
        const struct ipw_channel *ch = c->items[i].channel;

        if (!in_group(c, i, machine, IPW_SCOPE_DEVICE)) continue;
        if (!ch->in_sum && !(ch->kind == IPW_CHANNEL_GAUGE && counter_rejected(c, i))) continue;
        if (outside && rank(c->items[i].source) != 0) continue;
        if (better_known(c, i, machine)) continue;
        c->chosen[i] = true;
        n++;
        if (ch->kind == IPW_CHANNEL_GAUGE) gauges++;
        mig |= ch->whole_gpu;
        if (source && strcmp(source, c->items[i].source)) mixed = true;
        source = c->items[i].source;
    }
    if (n == 0) return false;
    say_what(c, IPW_SCOPE_DEVICE, n, mixed ? "several sources" : source, gauges == n, machine);
    if (gauges > 0 && gauges < n) say(c, ", %zu of them by power", gauges);
    if (mig) say(c, ", whole_gpu: MIG slices have no reading of their own");
    return true;
}

/* The source to use for this scope, or SIZE_MAX: the best one with a usable channel. */
static size_t pick_source(const struct chooser *c, size_t machine, enum ipw_scope scope)
{
    size_t best = SIZE_MAX;
    int best_rank = 3;

    for (size_t i = 0; i < c->n; i++) {
        const struct ipw_overlap_item *item = &c->items[i];

        if (!in_group(c, i, machine, scope)) continue;
        if (!item->channel->in_sum && !source_never_chooses(scope)) continue;
        if (rank(item->source) >= best_rank) continue;
        best = item->index;
        best_rank = rank(item->source);
    }
    return best;
}

/* Takes the channels of one source: those that it proposes (all if it proposes none), counters
 * before gauges, and registers before their memory-mapped copies. */
static bool choose_scope(struct chooser *c, size_t machine, enum ipw_scope scope)
{
    size_t source = pick_source(c, machine, scope), n = 0;
    const char *name = "";
    int best = -1;

    if (source == SIZE_MAX) return false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->n; i++) {
            const struct ipw_channel *ch = c->items[i].channel;
            int worth = 4 * ch->in_sum + 2 * (ch->kind == IPW_CHANNEL_COUNTER) +
                        (strncmp(ch->name, "mmio/", 5) != 0);

            if (c->items[i].index != source || !in_group(c, i, machine, scope)) continue;
            if (pass == 0 && worth > best) best = worth;
            if (pass == 0 || worth < best) continue;
            name = c->items[i].source;
            c->chosen[i] = true;
            n++;
        }
    }
    if (n) say_what(c, scope, n, name, !(best & 2), machine);
    return n > 0;
}

/* A GPU with its own meter may lie outside psys.  Then psys may not cover the machine, so the parts
 * are used: psys must not replace them and leave the GPU's joules out. */
static bool boards_beside(const struct chooser *c, size_t machine)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct ipw_channel *ch = c->items[i].channel;

        if (ch->domain == IPW_DOMAIN_GPU && ch->kind != IPW_CHANNEL_METRIC &&
            ch->scope == IPW_SCOPE_DEVICE && machine_of(&c->items[i]) == machine)
            return true;
    }
    return false;
}

static void choose_machine(struct chooser *c, size_t machine)
{
    for (const int *scope = orders[c->domain]; *scope >= 0; scope++) {
        if (*scope == IPW_SCOPE_PLATFORM && boards_beside(c, machine)) continue;
        if (c->domain == IPW_DOMAIN_GPU && *scope == IPW_SCOPE_DEVICE) {
            if (choose_boards(c, machine)) return;
        } else if (choose_scope(c, machine, (enum ipw_scope) * scope)) {
            return;
        }
    }
}

void ipw_overlap_choose(struct ipw_overlap_item *items, size_t n,
                        char basis[IPW_DOMAIN_COUNT][IPW_BASIS_BYTES],
                        size_t remote[IPW_DOMAIN_COUNT])
{
    struct chooser c = {.items = items, .n = n, .chosen = ipw_calloc(n + 1, sizeof *c.chosen)};
    size_t local;

    for (int d = 0; d < IPW_DOMAIN_COUNT; d++) {
        c.domain = (enum ipw_domain)d;
        c.basis = basis[d];
        c.basis[0] = '\0';
        choose_machine(&c, LOCAL);
        local = strlen(c.basis);
        for (size_t i = 0; i < n; i++) {
            size_t machine = machine_of(&items[i]);
            bool seen = machine == LOCAL;

            for (size_t k = 0; k < i && !seen; k++) seen = machine_of(&items[k]) == machine;
            if (!seen) choose_machine(&c, machine);
        }
        remote[d] = local + (local && c.basis[local] ? strlen(PLUS) : 0);
    }
    for (size_t i = 0; i < n; i++) items[i].channel->in_sum = c.chosen[i];
    free(c.chosen);
}

static size_t first_of_machine(const struct ipw_source_set *set, size_t source)
{
    const void *machine = set->sources[source]->machine;

    for (size_t i = 0; machine && i < source; i++)
        if (set->sources[i]->machine == machine) return i;
    return source;
}

void ipw_source_set_cover(struct ipw_source_set *set)
{
    struct ipw_overlap_item *items;
    size_t at = 0;

    if (!set->channels) ipw_source_set_describe(set);
    items = ipw_calloc(set->n_channels + 1, sizeof *items);
    for (size_t i = 0; i < set->n; i++) {
        struct ipw_source *s = set->sources[i];

        if (s->n_channels)
            memcpy(set->channels + at, set->own[i], s->n_channels * sizeof *set->channels);
        s->channels = set->channels + at;
        for (size_t k = 0; k < s->n_channels; k++, at++)
            items[at] = (struct ipw_overlap_item){.channel = &set->channels[at],
                                                  .source = s->name,
                                                  .index = i,
                                                  .machine = first_of_machine(set, i),
                                                  .rejected = set->rejected[at]};
    }
    ipw_overlap_choose(items, at, set->basis, set->basis_remote);
    free(items);
}

/* Bus ids and lists of words; see sysfs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "energy/sources/sysfs.h"

/* Splits "01:00.0", with or without a domain before it; *domain is 0 without. */
static bool split_bus(const char *text, unsigned long *domain, unsigned long *place)
{
    unsigned long d = 0, bus, device, function;
    size_t n = strspn(text, "0123456789abcdefABCDEF");
    const char *p = text;
    char *end;

    if (n >= 4 && n <= 8) { /* Linux writes at least four digits, the library eight */
        d = strtoul(p, &end, 16);
        if (*end != ':') return false;
        p = end + 1;
    }
    if (strspn(p, "0123456789abcdefABCDEF") != 2 || p[2] != ':') return false;
    bus = strtoul(p, NULL, 16);
    p += 3;
    if (strspn(p, "0123456789abcdefABCDEF") != 2 || p[2] != '.') return false;
    device = strtoul(p, NULL, 16);
    p += 3;
    if (*p < '0' || *p > '7' || p[1]) return false;
    function = (unsigned long)(*p - '0');
    *domain = d;
    *place = bus << 16 | device << 8 | function;
    return true;
}

bool ipw_pci_is_id(const char *text)
{
    unsigned long domain, place;

    return split_bus(text, &domain, &place);
}

bool ipw_pci_same_id(const char *a, const char *b)
{
    unsigned long domain_a, domain_b, place_a, place_b;

    return split_bus(a, &domain_a, &place_a) && split_bus(b, &domain_b, &place_b) &&
           domain_a == domain_b && place_a == place_b;
}

bool ipw_pci_canonical(char id[IPW_PCI_ID_BYTES], const char *text)
{
    unsigned long domain, place;

    if (!split_bus(text, &domain, &place)) return false;
    snprintf(id, IPW_PCI_ID_BYTES, "%04lx:%02lx:%02lx.%lx", domain, place >> 16, place >> 8 & 0xff,
             place & 0xff);
    return true;
}

bool ipw_sysfs_word(char *word, size_t size, const char **list)
{
    const char *p = *list;
    size_t n;

    while (p && (*p == ',' || *p == ' ')) p++;
    if (!p || !*p) return false;
    n = strcspn(p, ",");
    *list = p + n;
    while (n > 0 && p[n - 1] == ' ') n--;
    if (n >= size) n = size - 1; /* no device has such a long name, so it will not be found */
    memcpy(word, p, n);
    word[n] = '\0';
    return true;
}

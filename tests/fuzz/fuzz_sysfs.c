/* Kernel text as the hardware sources parse it: no input crashes, and what is taken for a number is
 * one.  Case 50 of tests/cases.txt. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "energy/sources/perf.h"
#include "energy/sources/sysfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256], id[IPW_PCI_ID_BYTES], word[16];
    const char *list = text, *format;
    int64_t v = 0, w;
    uint64_t config;
    int cpus[32], n;

    if (size >= sizeof text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    w = ipw_sysfs_parse(text, size);
    if (w < -1) abort();
    if (ipw_sysfs_parse_signed(&v, text, size) && w >= 0 && v != w) abort();
    n = ipw_perf_parse_cpus(cpus, 32, text);
    if (n == 0 || n > 32) abort();
    for (int i = 0; i < n; i++) {
        if (cpus[i] < 0) abort();
    }
    format = strchr(text, '\n');
    if (format) {
        text[format - text] = '\0';
        ipw_perf_parse_config(&config, text, format + 1);
        ipw_perf_parse_config(&config, "event=0x02", format + 1);
    }
    if (ipw_pci_canonical(id, text) && !ipw_pci_is_id(id)) abort();
    while (ipw_sysfs_word(word, sizeof word, &list)) {
        if (strlen(word) >= sizeof word || strchr(word, ',')) abort();
    }
    return 0;
}

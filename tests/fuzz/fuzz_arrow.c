/* Arrow: any bytes as a stream or a file of the IPC format (which one the bytes say).  Rows that are JSON objects, or
 * one line that names the file. */
#include "columnar_check.h"
#include "data/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *exact = exact_text(data, size);

    read_columnar("f.arrow", exact, size);
    free(exact);
    return 0;
}

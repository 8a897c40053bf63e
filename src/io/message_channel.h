/* io/message_channel.h: whole messages over a stream socket.
 *
 * Each message is its length (four bytes, little-endian) and its bytes.  The other side may be
 * hostile.  The channel ends if a length is over the limit, or if the peer does not read and the
 * waiting bytes reach the limit.  on_message may use its bytes only during the call.  on_close is
 * called once, when the other side closed or broke the rules.  Neither is called inside
 * ipw_message_channel_send() or after ipw_message_channel_close().  Both may call
 * ipw_message_channel_close(). */
#ifndef IPW_IO_MESSAGE_CHANNEL_H
#define IPW_IO_MESSAGE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"

struct ipw_message_channel;

struct ipw_message_channel_callbacks {
    void (*on_message)(void *ud, const char *bytes, size_t n);
    void (*on_close)(void *ud, const char *why); /* static text */
    void *ud;
};

/* Takes the descriptor and makes it non-blocking.  It keeps the loop running. */
struct ipw_message_channel *
ipw_message_channel_open(struct ipw_loop *loop, int fd, size_t max_bytes,
                         const struct ipw_message_channel_callbacks *callbacks);
void ipw_message_channel_send(struct ipw_message_channel *channel, const char *bytes, size_t n);
/* Blocks until something arrived or the channel ended, and calls back; false: it ended. */
bool ipw_message_channel_wait(struct ipw_message_channel *channel);
/* Writes all waiting bytes, blocking. */
void ipw_message_channel_flush(struct ipw_message_channel *channel);
void ipw_message_channel_close(struct ipw_message_channel *channel); /* NULL is fine */

#endif

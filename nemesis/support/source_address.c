/* Connections leave from the address of their broker.
 *
 * The local runtime tells callers by the address that they bind. Preloaded (LD_PRELOAD) into a program that binds none,
 * this library binds the IPv4 address in NEMESIS_SOURCE_ADDRESS before connect(), for stream sockets to addresses of the
 * loopback network 127.0.0.0/8, also where they are written as IPv6 (::ffff:127.b.c.d). No other host can be reached from
 * such a source. With IP_BIND_ADDRESS_NO_PORT the port is chosen at connect(),
 * so that many connections may share one. A socket that is bound already is left alone.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int (*next_connect)(int, const struct sockaddr *, socklen_t);
static struct in_addr source;
static int has_source;

__attribute__((constructor)) static void begin(void) {
    next_connect = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    const char *address = getenv("NEMESIS_SOURCE_ADDRESS");
    has_source = address != NULL && inet_pton(AF_INET, address, &source) == 1;
}

static int is_stream(int socket) {
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Whether the socket has no address yet. Its family is that of the address that the kernel reports. */
static int is_unbound(int socket) {
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof own;
    if (getsockname(socket, (struct sockaddr *)&own, &size) != 0)
        return 0;
    if (own.ss_family == AF_INET)
        return ((struct sockaddr_in *)&own)->sin_port == 0;
    return own.ss_family == AF_INET6 && ((struct sockaddr_in6 *)&own)->sin6_port == 0;
}

/* Whether the peer is in 127.0.0.0/8; size is that of its address. */
static int is_loopback(const struct sockaddr *peer, socklen_t size) {
    if (size >= sizeof(struct sockaddr_in) && peer->sa_family == AF_INET)
        return ((const unsigned char *)&((const struct sockaddr_in *)peer)->sin_addr)[0] == 127;
    if (size < sizeof(struct sockaddr_in6) || peer->sa_family != AF_INET6)
        return 0;
    const struct in6_addr *address = &((const struct sockaddr_in6 *)peer)->sin6_addr;
    return IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127;
}

static int bind_source(int socket, int family) {
    const int on = 1;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = source};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&mapped.sin6_addr.s6_addr[12], &source, sizeof source);
    setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (family == AF_INET)
        return bind(socket, (struct sockaddr *)&own, sizeof own);
    return bind(socket, (struct sockaddr *)&mapped, sizeof mapped);
}

int connect(int socket, const struct sockaddr *peer, socklen_t size) {
    if (next_connect == NULL) {
        errno = ENOSYS;
        return -1;
    }
    if (has_source && is_loopback(peer, size) && is_stream(socket) && is_unbound(socket) &&
        bind_source(socket, peer->sa_family) != 0)
        return -1;
    return next_connect(socket, peer, size);
}

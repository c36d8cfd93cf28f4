/* _kdf: pbkdf2_hmac and scrypt for hashlib, which CPython leaves to OpenSSL. RFC 8018, RFC 7914, FIPS 180-4. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* A hash that is being computed; those of 32-bit words use `narrow`, those of 64-bit words `wide`. */
struct state {
    union {
        uint32_t narrow[8];
        uint64_t wide[8];
    };
    uint64_t length;
    uint8_t block[128];
};

struct algorithm {
    const char *name;
    unsigned block, digest;
    int is_wide;
    void (*compress)(struct state *, const uint8_t *);
    const void *start;
};

static uint32_t left(uint32_t x, int n) { return x << n | x >> (32 - n); }
static uint32_t right(uint32_t x, int n) { return x >> n | x << (32 - n); }
static uint64_t right64(uint64_t x, int n) { return x >> n | x << (64 - n); }
static uint32_t load_big(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint32_t load_little(const uint8_t *p) { return (uint32_t)p[3] << 24 | p[2] << 16 | p[1] << 8 | p[0]; }
static uint64_t load_big64(const uint8_t *p) { return (uint64_t)load_big(p) << 32 | load_big(p + 4); }

/* The fractional parts of the cube roots of the first 80 primes: SHA-512's constants, whose upper halves are SHA-256's. */
static uint64_t roots[80];

/* floor(n * 2^192 ** (1/3)) without its integer part, by bisection in 128 bits: x^3 <= n * 2^192 with x < 2^67. */
static uint64_t
cube_root(unsigned n)
{
    unsigned whole = 0;
    while ((whole + 1) * (whole + 1) * (whole + 1) <= n)
        whole++;
    /* x = whole + f / 2^64; the cube is compared in 32-bit limbs, 7 of them after the point (3 * 64 bits) and one before. */
    uint64_t fraction = 0;
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t tried = fraction | 1ull << bit;
        uint32_t x[3] = { (uint32_t)tried, (uint32_t)(tried >> 32), whole }, square[6] = { 0 }, cube[9] = { 0 };
        for (int i = 0; i < 3; i++) {
            uint64_t carry = 0;
            for (int j = 0; j < 3; j++) {
                carry += (uint64_t)x[i] * x[j] + square[i + j];
                square[i + j] = (uint32_t)carry, carry >>= 32;
            }
            square[i + 3] += (uint32_t)carry;
        }
        for (int i = 0; i < 6; i++) {
            uint64_t carry = 0;
            for (int j = 0; j < 3; j++) {
                carry += (uint64_t)square[i] * x[j] + cube[i + j];
                cube[i + j] = (uint32_t)carry, carry >>= 32;
            }
            cube[i + 3] += (uint32_t)carry;
        }
        if (cube[6] < n)
            fraction = tried;
    }
    return fraction;
}

static void
fill_roots(void)
{
    for (unsigned n = 2, found = 0; found < 80; n++) {
        unsigned d = 2;
        while (d * d <= n && n % d)
            d++;
        if (d * d > n)
            roots[found++] = cube_root(n);
    }
}

static void
compress_sha256(struct state *s, const uint8_t *data)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = load_big(data + 4 * i);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3)
            + (right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->narrow, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t one = v[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + (uint32_t)(roots[i] >> 32) + w[i];
        uint32_t two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one, v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        s->narrow[i] += v[i];
}

static void
compress_sha512(struct state *s, const uint8_t *data)
{
    uint64_t w[80], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = load_big64(data + 8 * i);
    for (int i = 16; i < 80; i++)
        w[i] = w[i - 16] + w[i - 7] + (right64(w[i - 15], 1) ^ right64(w[i - 15], 8) ^ w[i - 15] >> 7)
            + (right64(w[i - 2], 19) ^ right64(w[i - 2], 61) ^ w[i - 2] >> 6);
    memcpy(v, s->wide, sizeof v);
    for (int i = 0; i < 80; i++) {
        uint64_t a = v[0], e = v[4];
        uint64_t one = v[7] + (right64(e, 14) ^ right64(e, 18) ^ right64(e, 41)) + ((e & v[5]) ^ (~e & v[6])) + roots[i] + w[i];
        uint64_t two = (right64(a, 28) ^ right64(a, 34) ^ right64(a, 39)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one, v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        s->wide[i] += v[i];
}

static void
compress_sha1(struct state *s, const uint8_t *data)
{
    static const uint32_t constants[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t w[80], a = s->narrow[0], b = s->narrow[1], c = s->narrow[2], d = s->narrow[3], e = s->narrow[4];
    for (int i = 0; i < 80; i++)
        w[i] = i < 16 ? load_big(data + 4 * i) : left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        uint32_t next = left(a, 5) + f + e + constants[i / 20] + w[i];
        e = d, d = c, c = left(b, 30), b = a, a = next;
    }
    s->narrow[0] += a, s->narrow[1] += b, s->narrow[2] += c, s->narrow[3] += d, s->narrow[4] += e;
}

static const uint32_t start_sha1[8] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
static const uint32_t start_sha224[8] = { 0xc1059ed8, 0x367cd507, 0x3070dd17, 0xf70e5939, 0xffc00b31, 0x68581511, 0x64f98fa7, 0xbefa4fa4 };
static const uint32_t start_sha256[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
static const uint64_t start_sha384[8] = { 0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
    0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4 };
static const uint64_t start_sha512[8] = { 0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179 };

static const struct algorithm algorithms[] = {
    { "sha1", 64, 20, 0, compress_sha1, start_sha1 },
    { "sha224", 64, 28, 0, compress_sha256, start_sha224 },
    { "sha256", 64, 32, 0, compress_sha256, start_sha256 },
    { "sha384", 128, 48, 1, compress_sha512, start_sha384 },
    { "sha512", 128, 64, 1, compress_sha512, start_sha512 },
};
#define SHA256 (&algorithms[2])

static void
begin(const struct algorithm *a, struct state *s)
{
    s->length = 0;
    memcpy(s->wide, a->start, a->is_wide ? 64 : 32);
}

static void
add(const struct algorithm *a, struct state *s, const uint8_t *data, size_t len)
{
    while (len) {
        size_t at = s->length % a->block, part = a->block - at < len ? a->block - at : len;
        memcpy(s->block + at, data, part);
        s->length += part, data += part, len -= part;
        if (s->length % a->block == 0)
            a->compress(s, s->block);
    }
}

static void
finish(const struct algorithm *a, struct state *s, uint8_t *out)
{
    static const uint8_t padding[128] = { 0x80 };
    uint64_t bits = s->length * 8;
    size_t field = a->is_wide ? 16 : 8, used = s->length % a->block;
    size_t pad = (used < a->block - field ? a->block : 2 * a->block) - field - used;
    uint8_t length[16] = { 0 };
    for (int i = 0; i < 8; i++)
        length[field - 1 - i] = (uint8_t)(bits >> 8 * i);
    add(a, s, padding, pad);
    add(a, s, length, field);
    for (unsigned i = 0; i < a->digest; i++)
        out[i] = a->is_wide ? (uint8_t)(s->wide[i / 8] >> (56 - i % 8 * 8)) : (uint8_t)(s->narrow[i / 4] >> (24 - i % 4 * 8));
}

/* An HMAC key, with its two first blocks hashed. */
struct key {
    struct state inner, outer;
};

static void
set_key(const struct algorithm *a, struct key *key, const uint8_t *password, size_t len)
{
    uint8_t block[128] = { 0 };
    if (len > a->block) {
        begin(a, &key->inner);
        add(a, &key->inner, password, len);
        finish(a, &key->inner, block);
    } else {
        memcpy(block, password, len);
    }
    for (unsigned i = 0; i < a->block; i++)
        block[i] ^= 0x36;
    begin(a, &key->inner);
    add(a, &key->inner, block, a->block);
    for (unsigned i = 0; i < a->block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    begin(a, &key->outer);
    add(a, &key->outer, block, a->block);
}

static void
sign(const struct algorithm *a, const struct key *key, struct state *inner, uint8_t *out)
{
    struct state outer = key->outer;
    finish(a, inner, out);
    add(a, &outer, out, a->digest);
    finish(a, &outer, out);
}

static void
pbkdf2(const struct algorithm *a, const Py_buffer *password, const uint8_t *salt, size_t salt_len, long rounds, uint8_t *out, size_t len)
{
    struct key key;
    set_key(a, &key, password->buf, password->len);
    for (uint32_t number = 1; len; number++) {
        uint8_t last[64], sum[64], counter[4] = { number >> 24, number >> 16, number >> 8, number };
        struct state s = key.inner;
        add(a, &s, salt, salt_len);
        add(a, &s, counter, 4);
        sign(a, &key, &s, last);
        memcpy(sum, last, a->digest);
        for (long i = 1; i < rounds; i++) {
            s = key.inner;
            add(a, &s, last, a->digest);
            sign(a, &key, &s, last);
            for (unsigned j = 0; j < a->digest; j++)
                sum[j] ^= last[j];
        }
        size_t part = len < a->digest ? len : a->digest;
        memcpy(out, sum, part);
        out += part, len -= part;
    }
}

static PyObject *
kdf_pbkdf2_hmac(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "hash_name", "password", "salt", "iterations", "dklen", NULL };
    const char *name;
    Py_buffer password, salt;
    long rounds, len = 0;
    PyObject *wanted = Py_None, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sy*y*l|O:pbkdf2_hmac", names, &name, &password, &salt, &rounds, &wanted))
        return NULL;
    const struct algorithm *a = NULL;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(algorithms); i++)
        if (!strcmp(algorithms[i].name, name))
            a = &algorithms[i];
    if (!a)
        PyErr_Format(PyExc_ValueError, "unsupported hash type %s", name);
    else if (rounds < 1)
        PyErr_SetString(PyExc_ValueError, "iteration value must be greater than 0.");
    else if ((len = wanted == Py_None ? (long)a->digest : PyLong_AsLong(wanted)) == -1 && PyErr_Occurred())
        ;
    else if (len < 1)
        PyErr_SetString(PyExc_ValueError, "key length must be greater than 0.");
    else if ((result = PyBytes_FromStringAndSize(NULL, len)))
        pbkdf2(a, &password, salt.buf, salt.len, rounds, (uint8_t *)PyBytes_AS_STRING(result), len);
    PyBuffer_Release(&password);
    PyBuffer_Release(&salt);
    return result;
}

static void
salsa(uint32_t b[16])
{
    static const uint8_t steps[16][4] = {
        { 4, 0, 12, 7 }, { 8, 4, 0, 9 }, { 12, 8, 4, 13 }, { 0, 12, 8, 18 }, { 9, 5, 1, 7 }, { 13, 9, 5, 9 }, { 1, 13, 9, 13 },
        { 5, 1, 13, 18 }, { 14, 10, 6, 7 }, { 2, 14, 10, 9 }, { 6, 2, 14, 13 }, { 10, 6, 2, 18 }, { 3, 15, 11, 7 }, { 7, 3, 15, 9 },
        { 11, 7, 3, 13 }, { 15, 11, 7, 18 },
    };
    /* The rows of the second half are the columns of the first. */
    uint32_t x[16];
    memcpy(x, b, sizeof x);
    for (int round = 0; round < 8; round++)
        for (int i = 0; i < 16; i++) {
            const uint8_t *s = steps[i];
#define AT(n) (round & 1 ? (n) % 4 * 4 + (n) / 4 : (n))
            x[AT(s[0])] ^= left(x[AT(s[1])] + x[AT(s[2])], s[3]);
#undef AT
        }
    for (int i = 0; i < 16; i++)
        b[i] += x[i];
}

static void
mix_block(uint32_t *b, uint32_t *y, unsigned r)
{
    uint32_t x[16];
    memcpy(x, b + (2 * r - 1) * 16, sizeof x);
    for (unsigned i = 0; i < 2 * r; i++) {
        for (int j = 0; j < 16; j++)
            x[j] ^= b[i * 16 + j];
        salsa(x);
        memcpy(y + (i / 2 + (i & 1) * r) * 16, x, sizeof x);
    }
    memcpy(b, y, r * 128);
}

static void
mix(uint8_t *bytes, uint32_t *b, uint32_t *y, uint32_t *v, uint32_t n, unsigned r)
{
    unsigned words = 32 * r;
    for (unsigned i = 0; i < words; i++)
        b[i] = load_little(bytes + 4 * i);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(v + (size_t)i * words, b, words * 4);
        mix_block(b, y, r);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *other = v + (size_t)(b[words - 16] & (n - 1)) * words;
        for (unsigned j = 0; j < words; j++)
            b[j] ^= other[j];
        mix_block(b, y, r);
    }
    for (unsigned i = 0; i < 4 * words; i++)
        bytes[i] = (uint8_t)(b[i / 4] >> i % 4 * 8);
}

static PyObject *
kdf_scrypt(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "password", "salt", "n", "r", "p", "maxmem", "dklen", NULL };
    Py_buffer password, salt = { 0 };
    long n = 0, r = 0, p = 0, most = 0, len = 64;
    PyObject *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|$y*lllll:scrypt", names, &password, &salt, &n, &r, &p, &most, &len))
        return NULL;
    /* OpenSSL's limit where none is given. */
    uint64_t allowed = most > 0 ? most : 32 << 20;
    if (!salt.buf)
        PyErr_SetString(PyExc_TypeError, "salt is required");
    else if (n < 2 || n & (n - 1))
        PyErr_SetString(PyExc_ValueError, "n must be a power of 2.");
    else if (r < 1 || p < 1 || len < 1 || most < 0)
        PyErr_SetString(PyExc_ValueError, "r, p and dklen must be positive, maxmem must not be negative");
    else if ((uint64_t)r * p >= 1 << 30 || 128ull * r * ((uint64_t)n + p + 2) > allowed)
        PyErr_SetString(PyExc_ValueError, "Invalid parameter combination for n, r, p, maxmem.");
    else {
        size_t part = 128 * r;
        uint8_t *bytes = PyMem_RawMalloc(part * p);
        uint32_t *work = PyMem_RawMalloc(part * ((size_t)n + 2));
        if (!bytes || !work)
            PyErr_NoMemory();
        else if ((result = PyBytes_FromStringAndSize(NULL, len))) {
            pbkdf2(SHA256, &password, salt.buf, salt.len, 1, bytes, part * p);
            for (long i = 0; i < p; i++)
                mix(bytes + i * part, work, work + 32 * r, work + 64 * r, n, r);
            pbkdf2(SHA256, &password, bytes, part * p, 1, (uint8_t *)PyBytes_AS_STRING(result), len);
        }
        PyMem_RawFree(bytes);
        PyMem_RawFree(work);
    }
    PyBuffer_Release(&password);
    if (salt.buf)
        PyBuffer_Release(&salt);
    return result;
}

static PyMethodDef methods[] = {
    { "pbkdf2_hmac", (PyCFunction)(void (*)(void))kdf_pbkdf2_hmac, METH_VARARGS | METH_KEYWORDS,
      "Password based key derivation function 2 (PKCS #5 v2.0) with HMAC as pseudorandom function." },
    { "scrypt", (PyCFunction)(void (*)(void))kdf_scrypt, METH_VARARGS | METH_KEYWORDS,
      "scrypt password-based key derivation function." },
    { NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_kdf", NULL, 0, methods };

PyMODINIT_FUNC
PyInit__kdf(void)
{
    fill_roots();
    return PyModuleDef_Init(&module);
}

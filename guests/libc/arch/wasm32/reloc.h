#define LDSO_ARCH "wasm32"
#define TPOFF_K 0

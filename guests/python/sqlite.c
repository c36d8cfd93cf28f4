/* How SQLite locks files: by a directory FILE.lock, as the command sqlite3 does here. The kernel has no locks on parts of
   files. */
#include <sqlite3.h>

int
wardian_sqlite_init(const char *unused)
{
    return sqlite3_vfs_register(sqlite3_vfs_find("unix-dotfile"), 1);
}

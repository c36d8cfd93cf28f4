/* Not used: stat goes through statx. */
struct kstat {
	long long st_atime_sec, st_mtime_sec, st_ctime_sec;
};

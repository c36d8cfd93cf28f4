/* Nobody can look into another process's registers. */

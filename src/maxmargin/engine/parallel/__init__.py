"""`n_jobs`: threads, processes, and a limit on the threads of BLAS."""

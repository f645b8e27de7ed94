"""Who walks over private rows: this process, a pool of processes on this machine, or Spark."""

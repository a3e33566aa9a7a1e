quern-profile 1
machine cpu_name="Golden CPU 9000" cpu=znver4 microcode=0x1 hypervisor="" l2_bytes=1048576 l3_bytes=33554432 huge_pages=madvise cores=8
entry build_open packed 2^24 pipeline=1 threads=1 setting=32 ns=5.1 default_ns=6.2 off_ns=11.4 noise=0.013
entry probe_open packed 2^15 pipeline=1 threads=1 setting=default ns=0.9 default_ns=0.9 off_ns=0.9 noise=0.02
entry probe_open packed 2^18 pipeline=1 threads=1 setting=default ns=1.1 default_ns=1.1 off_ns=1.1 noise=0.02
entry probe_open packed 2^22 pipeline=1 threads=1 setting=48 ns=3.2 default_ns=3.9 off_ns=6.4 noise=0.011

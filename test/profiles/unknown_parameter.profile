quern-profile 1
machine cpu_name="Golden CPU 9000" cpu=znver4 microcode=0x1 hypervisor="" l2_bytes=1048576 l3_bytes=33554432 huge_pages=madvise cores=8
entry build_open packed 2^24 pipeline=1 threads=1 setting=32 ns=5.1 default_ns=6.2 off_ns=11.4 noise=0.013
entry probe_open packed 2^15 pipeline=1 threads=1 setting=default ns=0.9 default_ns=0.9 off_ns=0.9 noise=0.02
entry probe_open packed 2^18 pipeline=1 threads=1 setting=default ns=1.1 default_ns=1.1 off_ns=1.1 noise=0.02
entry probe_open packed 2^22 pipeline=1 threads=1 setting=48 ns=3.2 default_ns=3.9 off_ns=6.4 noise=0.011 colour=red
entry probe_open packed 2^25 pipeline=1 threads=1 setting=96/hint=nta ns=4.4 default_ns=5 off_ns=14.7 noise=0.009
entry probe_open packed 2^29 pipeline=1 threads=1 setting=all/batch=512 ns=7.1 default_ns=8.4 off_ns=31 noise=0.01
entry probe_unchained string 2^26 pipeline=1 threads=1 setting=16/group=32/stages=2 ns=21.5 default_ns=24 off_ns=60 noise=0.015
end 7

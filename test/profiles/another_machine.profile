# Of a machine that nobody has.
quern-profile 1
machine cpu_name="Another CPU" cpu=znver4 microcode=0x1 hypervisor="" l2_bytes=1048576 l3_bytes=33554432 huge_pages=madvise cores=8
entry probe_open packed 2^22 pipeline=1 threads=1 setting=7 ns=3 default_ns=4 off_ns=6 noise=0.01
end 1

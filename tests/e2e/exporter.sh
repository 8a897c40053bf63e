# A page of an energy exporter, for tests: any web server serves it, and a program keeps it up to date with
# 100 W.  Source it after lib.sh.

serve_pages() { # ADDRESS: sets PAGE
    mkdir site
    mkfifo said
    PYTHONUNBUFFERED=1 python3 -m http.server 0 --bind "$1" --directory site >said 2>server.log &
    server=$!
    FAKES="$FAKES $server"
    read -r line <said
    PORT=$(echo "$line" | sed -n 's/.* port \([0-9]*\) .*/\1/p')
    [ -n "$PORT" ] || fail "no port in: $line"
    PAGE=http://$1:$PORT/metrics
}

cat >exporter.py <<'PY'
import os, sys, time
pages = {
    "dcgm": 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-1",modelName="H100"}} {mj:.0f}\n',
    "dcgm_two":
        '# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n'
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-1",modelName="H100"}} {mj:.0f}\n'
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="1",UUID="GPU-2",modelName="H100"}} 9223372036854775794\n'
        'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-1",modelName="H100"}} 100.0\n',
    "scaphandre": '# TYPE scaph_host_power_microwatts gauge\n'
                  'scaph_host_power_microwatts 100000000\n',
    "kepler": 'kepler_node_cpu_joules_total{{zone="package",index="0",path="/sys/x",node_name="n"}} {j:.6f}\n',
    "node": '# TYPE node_rapl_package_joules_total counter\n'
            'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {j:.6f}\n',
}
pages["node_cores"] = (
    pages["node"] +
    'node_rapl_core_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0:0"}} {j:.6f}\n'
    'node_cpu_seconds_total{{cpu="0",mode="idle"}} 1.5e+06\n')
start = time.monotonic()
for i in range(10**9):
    j = 5000 + 100 * (time.monotonic() - start)
    with open("site/next", "w") as f:
        f.write(pages[sys.argv[1]].format(j=j, mj=j * 1000))
    os.rename("site/next", "site/metrics")
    if i == 0:
        print("up", flush=True)
    time.sleep(0.05)
PY

exporter() { # FORMAT: returns when the page is there
    python3 exporter.py "$1" >said &
    writer=$!
    FAKES="$FAKES $writer"
    read -r line <said
    assert_eq "$line" up
}
stop_exporter() { kill $writer && wait $writer 2>/dev/null; }

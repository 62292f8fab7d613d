# docs: see docs/architecture.md
EXTRA_DIST += docs/adding-a-hook.md docs/architecture.md docs/contract.md docs/glossary.md docs/testing.md
EXTRA_DIST += docs/environment.md
EXTRA_DIST += docs/clients.md docs/see-through.md
EXTRA_DIST += docs/report.md docs/pool.md docs/ledger-format.md docs/trace.md docs/bench.md
EXTRA_DIST += docs/simulator.md docs/hardware.md
EXTRA_DIST += docs/ascend.md docs/ipc.md
EXTRA_DIST += docs/python.md docs/phases.md docs/check.md docs/several.md docs/watch.md docs/export.md docs/html.md docs/pictures/html-overview.png docs/pictures/html-time.png docs/pictures/html-flame.png docs/pictures/html-segments.png
EXTRA_DIST += docs/differences.md docs/vendor-calls.md docs/memory-order.md docs/containers.md docs/packages.md docs/releases.md
EXTRA_DIST += docs/questions/README.md docs/questions/what-holds-my-memory.md docs/questions/what-leaks.md \
	docs/questions/why-did-it-run-out.md docs/questions/what-is-wasted.md docs/questions/what-changed.md

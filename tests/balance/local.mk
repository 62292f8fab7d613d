# tests/balance: what is in use, and whose each byte of it is, against the simulated driver's own ledger
check_PROGRAMS += tests/balance/agent
tests_balance_agent_LDADD = libcudart.so.13
dist_check_SCRIPTS += tests/balance/balance.py
EXTRA_DIST += tests/balance/commands.py

"""Large collections beside PostgreSQL, every party in a process of its own, with faults.

``python -m benches.collection`` collects reports over HTTP, sums them by the commands of
``secagg collect``, and compares the sum with the plain sum of all acknowledged reports.
"""

"""The public test kit: streams as small tables, seeded disorder, a conformance suite, hypothesis strategies.

Import the part you need (`from headrace.testing.conformance import check_query`); needs the extra `headrace[testing]`.
"""

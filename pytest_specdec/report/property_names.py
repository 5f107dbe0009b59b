"""Names of the properties that reports of tests are told apart by. Floor 4.

It imports nothing: a session without a gate reads them too, and loads no gate for that.
"""

CHECK = "specdec_check"
"""Every test of ours has it, and no other test does."""
PROFILE = "specdec_profile"
"""Every test that needs engines has it: ours, and those of a user's own."""
WORKLOAD = "specdec_workload"
VERDICT = "specdec_verdict"
KNOWN_DEFECT = "specdec_known_defect"

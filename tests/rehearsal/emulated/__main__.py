"""Serves the emulated AWS on loopback: ``python -m rehearsal.emulated``."""

from ministack.app import main

from rehearsal.emulated import alarms, ec2, functions, resources, tables, trouble

for part in (resources, functions, alarms, ec2, tables, trouble):
    part.install()
main()

#!/usr/bin/env python3
"""Writes the policies of all services. It runs in the chroot, before each start.

A user with the roles "member" and "operator" may do what the table of rights in docs/openstack.md lists, and nothing
else. The role "no-RIGHT" takes this right away. Other users keep the rights that the services give them. The names of
the listed rights are written to the file "rights".
"""
import os
import re
import sys

from oslo_policy import generator

HERE = os.path.dirname(os.path.abspath(__file__))
# The names in the table by service, and what all names of the service begin with.
SERVICES = {
    "compute": ("nova", "os_compute_api:"),
    "network": ("neutron", ""),
    "image": ("glance", ""),
    "block storage": ("cinder", ""),
}


def listed(page):
    """Returns the names in the table by service."""
    names = {service: set() for service in SERVICES}
    for line in page:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] in SERVICES:
            names[cells[1]].update(re.findall(r"`([^`]+)`", cells[3]))
    return names


def default(rule):
    """Returns the check that holds without a file, which includes that of a deprecated rule."""
    if rule.deprecated_rule:
        return f"({rule.check_str or '@'}) or ({rule.deprecated_rule.check_str or '@'})"
    return f"({rule.check_str or '@'})"


def main():
    with open(os.path.join(HERE, "openstack.md"), encoding="utf-8") as page:
        names = listed(page)
    rights = []
    for service, (project, prefix) in SERVICES.items():
        if not os.path.isdir(f"/etc/{project}"):
            continue  # with guests, there is no cinder
        lines, known = [], set()
        for rule in generator.get_policies_dict([project])[project]:
            if not getattr(rule, "operations", None):
                continue  # a rule that only other rules refer to
            name = rule.name.removeprefix(prefix)
            known.add(name)
            refused = f"role:no-{rule.name}" if name in names[service] else "role:operator"
            lines.append(f'"{rule.name}": "({default(rule)}) and not {refused}"\n')
            if name in names[service]:
                rights.append(f"{rule.name}\n")
        if names[service] - known:
            sys.exit(f"{project} has no policy {', '.join(sorted(names[service] - known))}, which docs/openstack.md lists")
        with open(f"/etc/{project}/policy.yaml", "w", encoding="utf-8") as file:
            file.writelines(lines)
    with open(os.path.join(HERE, "rights"), "w", encoding="utf-8") as file:
        file.writelines(rights)


if __name__ == "__main__":
    main()

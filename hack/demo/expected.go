package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// expectation is the status that one object must reach.
type expectation struct {
	// conditions maps a type to the status, or to status/reason.
	conditions map[string]string
	// status maps a field to its value as text, or to one of the constants below.
	status map[string]string
}

const (
	anyUUID    = "a uuid"
	anyPercent = "a number of 0-100"
	absent     = "absent"
)

// running are the conditions of a VM that runs.
var running = map[string]string{"Ready": "True/Running", "NameChecked": "True", "Created": "True/Created"}

// expectations has the expectation of samples by kind and name. That of a group
// depends on its spec; a sample that is not listed must become Ready.
type expectations map[string]expectation

// expected are the expectations on the mock cloud.
var expected = expectations{
	"Cloud/default": {conditions: map[string]string{"Ready": "True", "Authenticated": "True", "Braked": "False"}},
	"VM/sample":     {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/web":        {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/database":   {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/archive":    {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/store":      {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/replica": {
		conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running", "host": "esxi-1", "zone": "zone-a"},
	},
	"VM/frontend": {
		conditions: map[string]string{"Ready": "True/Running", "NameChecked": "True", "Created": "True/Created", "GuestReady": "True/AddressKnown"},
		status:     map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"},
	},
	"GPUInfo/gpuinfo-sample": {
		conditions: map[string]string{"Ready": "True/Placed", "Placed": "True/Placed"},
		status:     map[string]string{"suitableNodeName": "worker-1", "suitableHostName": "esxi-1", "availableAcceleratorTime": "399"},
	},
	"GPUInfo/plain": {
		conditions: map[string]string{"Ready": "True/Placed", "Placed": "True/Placed"},
		status:     map[string]string{"suitableNodeName": "worker-2", "suitableHostName": "esxi-2", "availableAcceleratorTime": "720"},
	},
	"VM/standby": {
		conditions: map[string]string{"Ready": "True/Stopped", "NameChecked": "True", "Created": "True/Created"},
		status:     map[string]string{"vmId": anyUUID, "state": "Stopped"},
	},
	"VM/asleep": {
		conditions: map[string]string{"Ready": "True/Suspended", "NameChecked": "True", "Created": "True/Created"},
		status:     map[string]string{"vmId": anyUUID, "state": "Suspended"},
	},
	"VM/workstation": {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"VM/router":      {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"Network/backend": {
		conditions: map[string]string{"Ready": "True/InSync", "Created": "True/Created"},
		status:     map[string]string{"networkId": anyUUID, "cloud": "default", "attachedVMs": "1"},
	},
	"VM/bastion": {
		conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running", "publicAddress": "203.0.113.1"},
	},
	"VM/networked": {conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running"}},
	"Network/example-network": {
		conditions: map[string]string{"Ready": "True/InSync", "Created": "True/Created"},
		status:     map[string]string{"networkId": anyUUID, "cloud": "default", "attachedVMs": "3"},
	},
	"VMSnapshot/before-upgrade": {
		conditions: map[string]string{"Ready": "True/InSync", "Created": "True/Created"},
		status:     map[string]string{"snapshotId": anyUUID, "vmId": anyUUID, "cloud": "default"},
	},
	"VM/taboo": {
		conditions: map[string]string{
			"Ready": "False/Prohibited", "NameChecked": "False/Prohibited", "Created": "False/Pending", "Stalled": "True/Prohibited",
		},
		status: map[string]string{"vmId": absent, "cpuUtilization": absent, "state": "Failed"},
	},
}

// of returns the expectation of an object with its present spec.
func (all expectations) of(object *unstructured.Unstructured) expectation {
	if object.GetKind() == "VmGroup" {
		return expectationOfGroup(object)
	}
	if e, ok := all[object.GetKind()+"/"+object.GetName()]; ok {
		return e
	}
	return expectation{conditions: map[string]string{"Ready": "True"}}
}

func expectationOfGroup(group *unstructured.Unstructured) expectation {
	n := strconv.FormatInt(membersOf(group), 10)
	if hasProhibitedTemplate(group) {
		return expectation{
			conditions: map[string]string{"Ready": "False/MembersStalled", "Stalled": "True/MembersStalled"},
			status:     map[string]string{"phase": "ERROR", "replicas": n, "readyReplicas": n, "cpuUtilization": absent},
		}
	}
	return expectation{
		conditions: map[string]string{"Ready": "True/Reconciled"},
		status:     map[string]string{"phase": "RUNNING", "replicas": n, "readyReplicas": n, "updatedReplicas": n, "cpuUtilization": anyPercent},
	}
}

// membersOf returns the number of servers that a group must have.
func membersOf(group *unstructured.Unstructured) int64 {
	if hasProhibitedTemplate(group) {
		return 0
	}
	if n, found, _ := unstructured.NestedInt64(group.Object, "spec", "replicas"); found {
		return n
	}
	return 1
}

func hasProhibitedTemplate(group *unstructured.Unstructured) bool {
	template, _, _ := unstructured.NestedString(group.Object, "spec", "template")
	return template == prohibitedTemplate
}

// differencesOf returns the differences between an object and its expectation,
// sorted, and nil if there are none.
func differencesOf(object *unstructured.Unstructured, e expectation) []string {
	if _, found := object.Object["status"]; !found {
		return []string{"it has no status yet"}
	}
	var differences []string
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if observed != object.GetGeneration() {
		differences = append(differences, fmt.Sprintf("status.observedGeneration is %d, expected %d", observed, object.GetGeneration()))
	}
	conditions := conditionsOf(object)
	for _, kind := range slices.Sorted(maps.Keys(e.conditions)) {
		want, is := e.conditions[kind], conditions[kind]
		status, reason, exact := strings.Cut(want, "/")
		if is.status != status || (exact && is.reason != reason) {
			differences = append(differences, fmt.Sprintf("condition %s is %v, expected %s", kind, is, want))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(e.status)) {
		value, found, _ := unstructured.NestedFieldNoCopy(object.Object, "status", field)
		if !matches(value, found, e.status[field]) {
			is := absent
			if found {
				is = fmt.Sprint(value)
			}
			differences = append(differences, fmt.Sprintf("status.%s is %s, expected %s", field, is, e.status[field]))
		}
	}
	return differences
}

func matches(value any, found bool, want string) bool {
	text := fmt.Sprint(value)
	switch want {
	case absent:
		return !found
	case anyUUID:
		_, err := uuid.Parse(text)
		return found && err == nil
	case anyPercent:
		n, ok := value.(int64)
		return ok && n >= 0 && n <= 100
	default:
		return found && text == want
	}
}

type condition struct{ status, reason, message string }

func (c condition) String() string {
	switch {
	case c.status == "":
		return absent
	case c.message == "":
		return c.status + "/" + c.reason
	default:
		return fmt.Sprintf("%s/%s (%s)", c.status, c.reason, c.message)
	}
}

func conditionsOf(object *unstructured.Unstructured) map[string]condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	conditions := make(map[string]condition, len(list))
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { value, _ := fields[key].(string); return value }
		conditions[text("type")] = condition{text("status"), text("reason"), text("message")}
	}
	return conditions
}

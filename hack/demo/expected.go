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

// expectation is what is to become of one object.
type expectation struct {
	// conditions by type: the status, or status/reason.
	conditions map[string]string
	// status fields by name: the value in words, or one of the constants below.
	status map[string]string
}

const (
	aUUID    = "a uuid"
	aPercent = "a number of 0-100"
	nothing  = "absent"
)

// exists is what is to become of a VM that runs.
var exists = map[string]string{"Ready": "True/Running", "NameChecked": "True", "Created": "True/Created"}

// expected is what is to become of the samples. Of a group, its spec says so; another that is not listed is to be Ready.
var expected = map[string]expectation{
	"Cloud/default": {conditions: map[string]string{"Ready": "True", "Authenticated": "True", "Braked": "False"}},
	"VM/sample":     {conditions: exists, status: map[string]string{"vmId": aUUID, "cpuUtilization": aPercent, "state": "Running"}},
	"VM/web":        {conditions: exists, status: map[string]string{"vmId": aUUID, "cpuUtilization": aPercent, "state": "Running"}},
	"VM/database":   {conditions: exists, status: map[string]string{"vmId": aUUID, "cpuUtilization": aPercent, "state": "Running"}},
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
		status:     map[string]string{"vmId": aUUID, "state": "Stopped"},
	},
	"VM/networked": {conditions: exists, status: map[string]string{"vmId": aUUID, "cpuUtilization": aPercent, "state": "Running"}},
	"Network/example-network": {
		conditions: map[string]string{"Ready": "True/InSync", "Created": "True/Created"},
		status:     map[string]string{"networkId": aUUID, "cloud": "default", "attachedVMs": "1"},
	},
	"VM/taboo": {
		conditions: map[string]string{
			"Ready": "False/Prohibited", "NameChecked": "False/Prohibited", "Created": "False/Pending", "Stalled": "True/Prohibited",
		},
		status: map[string]string{"vmId": nothing, "cpuUtilization": nothing, "state": "Failed"},
	},
}

// expectationOf is what is to become of an object as it asks for it itself.
func expectationOf(object *unstructured.Unstructured) expectation {
	if object.GetKind() == "VmGroup" {
		return expectationOfGroup(object)
	}
	if e, ok := expected[object.GetKind()+"/"+object.GetName()]; ok {
		return e
	}
	return expectation{conditions: map[string]string{"Ready": "True"}}
}

func expectationOfGroup(group *unstructured.Unstructured) expectation {
	n := strconv.FormatInt(membersOf(group), 10)
	if hasProhibitedTemplate(group) {
		return expectation{
			conditions: map[string]string{"Ready": "False/MembersStalled", "Stalled": "True/MembersStalled"},
			status:     map[string]string{"phase": "ERROR", "replicas": n, "readyReplicas": n, "cpuUtilization": nothing},
		}
	}
	return expectation{
		conditions: map[string]string{"Ready": "True/Reconciled"},
		status:     map[string]string{"phase": "RUNNING", "replicas": n, "readyReplicas": n, "updatedReplicas": n, "cpuUtilization": aPercent},
	}
}

// membersOf is how many servers a group is to have.
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

// unmet returns in what an object is not yet as expected, sorted; nothing when it is.
func unmet(object *unstructured.Unstructured, e expectation) []string {
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
		if !fits(value, found, e.status[field]) {
			is := nothing
			if found {
				is = fmt.Sprint(value)
			}
			differences = append(differences, fmt.Sprintf("status.%s is %s, expected %s", field, is, e.status[field]))
		}
	}
	return differences
}

func fits(value any, found bool, want string) bool {
	text := fmt.Sprint(value)
	switch want {
	case nothing:
		return !found
	case aUUID:
		_, err := uuid.Parse(text)
		return found && err == nil
	case aPercent:
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
		return nothing
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

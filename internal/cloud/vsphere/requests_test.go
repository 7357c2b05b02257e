package vsphere_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit/golden"
)

// volatile is what differs between two runs of one test.
var volatile = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\b(vm|task|session|snapshot)-\d+\b`), "$1-N"},
	{regexp.MustCompile(`([0-9a-f]{2}:){5}[0-9a-f]{2}`), "MAC"},
	{regexp.MustCompile(`<changeVersion>\d+<`), "<changeVersion>N<"},
	{regexp.MustCompile(` xmlns:_XMLSchema-instance="[^"]*"`), ""},
	{regexp.MustCompile(`_XMLSchema-instance:`), "xsi:"},
}

// encoded matches guest data, which has the instance id.
var encoded = regexp.MustCompile(`>[A-Za-z0-9+/]{20,}={0,2}<`)

// constant returns text without what differs between two runs.
func constant(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	return text
}

// soapBody is the request in an envelope.
var soapBody = regexp.MustCompile(`(?s)<(?:\w+:)?Body[^>]*>(.*)</(?:\w+:)?Body>`)

// recordedCalls records the requests by which VMs are created and changed.
type recordedCalls struct {
	mu   sync.Mutex
	text strings.Builder
	on   bool
	// templates replaces the ids of templates by their names.
	templates *strings.Replacer
}

func (r *recordedCalls) add(method, body string) (status int, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	methods := []string{"CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest", "SuspendVM_Task", "ReconfigureComputeResource_Task", "PowerOnMultiVM_Task"}
	if r.on && slices.Contains(methods, method) {
		sent := body
		if found := soapBody.FindStringSubmatch(body); found != nil {
			sent = found[1]
		}
		sent = encoded.ReplaceAllStringFunc(sent, func(value string) string {
			text, err := base64.StdEncoding.DecodeString(strings.Trim(value, "<>"))
			if err != nil || !utf8.Valid(text) {
				return value
			}
			return ">base64 of " + string(text) + "<"
		})
		fmt.Fprintln(&r.text, strings.ReplaceAll(constant(r.templates.Replace(sent)), "><", ">\n<"))
	}
	return 0, ""
}

// during records what a call sends, until its operation has ended.
func (r *recordedCalls) during(t *testing.T, c *vsphere.Client, title string, call func() (cloud.Result, error)) (server cloud.Server) {
	t.Helper()
	r.set(true)
	defer r.set(false)
	fmt.Fprintf(&r.text, "\n=== %s\n", title)
	result, err := call()
	if err == nil && result.Operation != "" {
		result.Server, err = follow(t.Context(), c, result.Operation)
	}
	if err != nil {
		fmt.Fprintf(&r.text, "error: %s: %s\n", cloud.KindOf(err), constant(err.Error()))
	}
	return result.Server
}

func (r *recordedCalls) set(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}

// TestRequestsAreAsRecorded compares the requests of creates and changes with those that are recorded.
func TestRequestsAreAsRecorded(t *testing.T) {
	v := newZones(t)
	zones := zoned(vsphere.Zone{Name: "a", ResourcePool: root}, vsphere.Zone{Name: "b", ResourcePool: poolB})
	c := v.client(t, zones, func(cfg *vsphere.Config) { cfg.Place.TemplateFolder, cfg.Place.DefaultTemplate = vcsim.Folder, "base" })
	administrator, templates := v.client(t, zones), []string{}
	for _, name := range []string{"base", "golden"} {
		create(t, administrator, cloud.CreateServer{Name: name, PowerState: cloud.PowerOff})
		v.Convert(v.VM(name), true)
		templates = append(templates, v.VM(name).Self.Value+"<", name+"<")
	}
	sent := &recordedCalls{templates: strings.NewReplacer(templates...)}
	v.Front.AnswerRequests(sent.add)
	var networks []string
	for _, network := range portGroups(v.Server) {
		networks = append(networks, network.ID)
	}
	slices.Sort(networks)
	// The simulator keeps a name for some time after its VM was deleted.
	n := 0
	own := func() string {
		n++
		return fmt.Sprintf("web-%03d", n)
	}
	creates := cloudtest.Creates(append(networks, networks...), "b", "golden")
	for _, name := range cloudtest.Sorted(creates) {
		req := creates[name]
		req.Name, req.IdempotencyKey = own(), ""
		made := sent.during(t, c, "create: "+name, func() (cloud.Result, error) { return c.CreateServer(t.Context(), req) })
		if made.ID != "" {
			remove(t, c, made.ID)
		}
	}
	changes := cloudtest.Changes()
	base := cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Disks: "data=1024", Labels: map[string]string{"env": "dev", "team": "a", "owner/uid": "u1"}}
	for _, state := range []cloud.PowerState{cloud.PowerOn, cloud.PowerOff, cloud.PowerSuspended} {
		for _, name := range cloudtest.Sorted(changes) {
			base.Name = own()
			server := create(t, c, base)
			if state != cloud.PowerOn {
				setPower(t, c, server.ID, state)
			}
			sent.during(t, c, fmt.Sprintf("change while %s: %s", state, name), func() (cloud.Result, error) {
				return c.UpdateServer(t.Context(), server.ID, changes[name])
			})
			remove(t, c, server.ID)
		}
	}
	golden.Compare(t, "requests", sent.text.String())
}

func setPower(t *testing.T, c *vsphere.Client, id string, state cloud.PowerState) {
	t.Helper()
	name := map[cloud.PowerState]string{cloud.PowerOff: "off", cloud.PowerSuspended: "suspended"}[state]
	result, err := c.UpdateServer(t.Context(), id, cloudtest.Changes()[name])
	if err == nil && result.Operation != "" {
		_, err = follow(t.Context(), c, result.Operation)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

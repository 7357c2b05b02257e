package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// hostileCase is a cloud whose answers take as much memory as they can.
type hostileCase struct {
	profile profile
	// quirks and faults are switched on once the Cloud is Ready. {cluster} in the part
	// that a fault repeats stands for the id of this cluster.
	quirks string
	faults []mockcloud.Fault
	// asked are the calls that get a hostile answer, as method and route. There are none
	// if only listings of servers are hostile.
	asked []string
	// reason and message are those of the condition Ready of the Cloud, which is True if
	// the reason is Connected.
	reason, message string
	// known is how many servers the Cloud reports.
	known int32
}

// unreadable is a listing of servers that cannot be used.
func unreadable(message string, listing mockcloud.Fault) hostileCase {
	return hostileCase{faults: []mockcloud.Fault{listing}, reason: pcapi.PollFailedReason, message: message}
}

// readable is a listing of so many servers that is used.
func readable(known int32, listing mockcloud.Fault) hostileCase {
	return hostileCase{faults: []mockcloud.Fault{listing}, reason: pcapi.ConnectedReason, known: known}
}

// quirky is a cloud with quirks, the listings of which cannot be used.
func quirky(p profile, quirks, message string) hostileCase {
	return hostileCase{profile: p, quirks: quirks, reason: pcapi.PollFailedReason, message: message}
}

// answering makes the first calls of each kind get the body of f.
func answering(p profile, calls []string, f mockcloud.Fault) hostileCase {
	c := hostileCase{profile: p, asked: calls, reason: pcapi.ConnectedReason}
	for _, call := range calls {
		f.Match.Method, f.Match.Path, _ = strings.Cut(call, " ")
		f.Match.Count = 2
		if slices.Contains([]string{"GET /check/{name}", "POST /servers", "GET /servers/{id}/status"}, call) {
			f.Match.Count = hostileVMs
		}
		c.faults = append(c.faults, f)
	}
	return c
}

// always makes all calls of a kind get the body of f.
func always(call string, f mockcloud.Fault) hostileCase {
	c := answering(extended, []string{call}, f)
	c.faults[0].Match.Count = 0
	return c
}

var listServers = mockcloud.Match{Method: http.MethodGet, Path: "/servers"}

const gigabyte = 1 << 30

// listed is a compressed listing that repeats a server, without end if times is 0.
func listed(server string, times int) mockcloud.Fault {
	return mockcloud.Fault{Match: listServers, Status: http.StatusOK, Gzip: true, Repeat: &mockcloud.Repetition{
		Start: `{"servers":[{"id":"first-{call}","name":"first"}`, Part: "," + server, Times: times, End: "]}",
	}}
}

// paged is a listing without end that repeats a server so often on each page.
func paged(server string, times int) mockcloud.Fault {
	f := listed(server, times)
	f.Repeat.End = `],"next":"{call}"}`
	return f
}

// endless is a compressed body that repeats a part without end.
func endless(start, part string) mockcloud.Fault {
	return mockcloud.Fault{Match: listServers, Gzip: true, Repeat: &mockcloud.Repetition{Start: start, Part: part}}
}

// entries is a compressed listing of networks or hosts.
func entries(start, entry string, times int, end string) mockcloud.Fault {
	first := strings.ReplaceAll(entry, "{n}", "0")
	return mockcloud.Fault{Gzip: true, Repeat: &mockcloud.Repetition{Start: start + first, Part: "," + entry, Times: times, End: end}}
}

func failing(status int, f mockcloud.Fault) mockcloud.Fault {
	f.Status = status
	return f
}

// madeUp is a server with further fields. Its number of cores is another one in each
// listing, so that nothing of the last listing can be used.
func madeUp(fields string) string {
	return `{"id":"3d2f3b5c-0000-4000-8000-{n}","name":"made-up-{n}","cpu":{call}` + fields + "}"
}

// another is a server that no other listing has.
func another(fields string) string { return strings.ReplaceAll(madeUp(fields), "{n}", "{call}-{n}") }

func manyLabels(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"label-%d":"{n}"`, i)
	}
	return `,"labels":{` + text.String()[1:] + "}"
}

const (
	// ownLabels are labels by which a server belongs to this cluster, but to no VM.
	ownLabels = `,"labels":{"` + inventory.UIDLabel + `":"3d2f3b5c-0000-4000-9000-{n}","` + inventory.ClusterLabel + `":"{cluster}","` +
		inventory.NamespaceLabel + `":"default","` + inventory.NameLabel + `":"made-up-{n}"}`
	madeUpNetwork = `{"id":"3d2f3b5c-0000-4000-8000-{n}","name":"{call}-{n}","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`
	madeUpHost    = `{"name":"{call}-{n}","gpu":true,"availableHours":{n}}`
)

// almost is a text of almost the length that a field may have.
var almost = strings.Repeat("x", 240)

// hostileListings are listings of servers.
var hostileListings = map[string]hostileCase{
	"kilobytes that unpack to gigabytes: refused":       quirky(extended, "gzipBomb=8000000000", "it has no id"),
	"kilobytes that unpack to gigabytes, core: refused": quirky(core, "gzipBomb=8000000000", "it has no id"),
	"a million servers: refused":                        quirky(extended, "hugeListing=1000000", "more than 100000 servers"),
	"a million servers, core: refused":                  quirky(core, "hugeListing=1000000", "more than 100000 servers"),

	"a valid listing of 9 MB: accepted":                         readable(45_001, listed(madeUp(manyLabels(2)+`,"template":"`+almost[:100]+`"`), 45_000)),
	"as many servers as are allowed: accepted":                  readable(100_000, listed(another(""), 99_999)),
	"as many as are allowed, each of this cluster: accepted":    readable(75_001, listed(madeUp(`,"state":"BUILDING"`+ownLabels), 75_000)),
	"servers of this cluster, others in each listing: accepted": readable(65_001, listed(another(ownLabels), 65_000)),

	"servers with many labels: refused":                      unreadable("larger than 32 MiB", listed(madeUp(manyLabels(64)), 0)),
	"servers with long texts: refused":                       unreadable("larger than 32 MiB", listed(madeUp(`,"host":"{n}`+almost+`","template":"{n}`+almost+`","networkId":"{n}`+almost+`"`), 0)),
	"pages without end: refused":                             unreadable("more than 100000 servers", paged(another(""), 2000)),
	"pages without end, of servers of this cluster: refused": unreadable("more than 32 MiB of servers", paged(another(`,"host":"{n}`+almost+`"`+ownLabels), 5000)),
	"pages that loop: refused":                               unreadable("a page marker came back", mockcloud.Fault{Match: listServers, List: &mockcloud.ListFault{Loop: true}}),
	"a text of gigabytes: refused":                           unreadable("larger than 256 KiB", mockcloud.Fault{Match: listServers, HugeBytes: 8 * gigabyte}),
	"space without end: refused":                             unreadable("larger than 256 KiB", endless("", " ")),
	"lists in lists without end: refused":                    unreadable("not valid JSON", endless(`{"servers":`, "[")),
	"objects in objects without end: refused":                unreadable("not valid JSON", endless("", `{"{n}":`)),
	"fields without end beside the servers: refused":         unreadable("beside the list", endless(`{"x":0`, `,"{n}":[{}]`)),
	"an error of the cloud without end: refused":             unreadable("400 Bad Request", failing(http.StatusBadRequest, endless(`{"code":"x","detail":"`, "x"))),
	"an answer with headers of 10 MB: refused": unreadable("the headers of the answer are larger than", mockcloud.Fault{
		Match: listServers, Headers: map[string]string{"X-Long": strings.Repeat("x", 10<<20)},
	}),
}

var (
	extendedCalls = []string{
		"GET /capabilities", "GET /check/{name}", "POST /servers", "GET /servers/{id}", "PATCH /servers/{id}", "DELETE /servers/{id}",
		"GET /networks", "POST /networks", "PATCH /networks/{id}", "DELETE /networks/{id}", "GET /hosts",
	}
	coreCalls = []string{"GET /check/{name}", "POST /servers", "GET /servers/{id}", "GET /servers/{id}/status", "DELETE /servers/{id}"}
	// afterCheck are the calls of a VM whose name is allowed, and whose create is refused.
	afterCheck = slices.DeleteFunc(slices.Clone(extendedCalls), func(call string) bool { return call == "GET /check/{name}" || call == "GET /servers/{id}" })

	// login is a cloud that needs a session.
	login = profile{mock: mockcloud.Options{Username: "operator", Password: "secret"}}
)

// hostileAnswers are answers to other calls.
var hostileAnswers = map[string]hostileCase{
	"a text of gigabytes":              answering(extended, extendedCalls, mockcloud.Fault{HugeBytes: 8 * gigabyte, Gzip: true}),
	"a text of gigabytes, core":        answering(core, coreCalls, mockcloud.Fault{HugeBytes: 8 * gigabyte, Gzip: true}),
	"a session of gigabytes":           answering(login, []string{"POST /sessions"}, mockcloud.Fault{HugeBytes: 8 * gigabyte, Gzip: true}),
	"lists in lists without end":       answering(extended, extendedCalls, endless("", "[")),
	"as many fields as a megabyte has": answering(extended, extendedCalls, entries(`{"id":"i","name":"i",`, `"{n}":[{}]`, 70_000, "}")),
	"a conflict without end":           answering(extended, afterCheck, failing(http.StatusConflict, endless(`{"code":"x","detail":"`, "x"))),
	"a failure without end":            answering(extended, extendedCalls, failing(http.StatusInternalServerError, endless(`{"code":"x"`, `,"{n}":{}`))),
	"as many networks as are allowed":  always("GET /networks", entries(`{"networks":[`, madeUpNetwork, 28_000, "]}")),
	"networks without end":             always("GET /networks", entries(`{"networks":[`, madeUpNetwork, 0, "")),
	"as many hosts as are allowed":     always("GET /hosts", entries("[", madeUpHost, 50_000, "]")),
	"hosts without end":                always("GET /hosts", entries("[", madeUpHost, 0, "")),
}

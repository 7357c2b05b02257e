package rest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// memoryChild names the body that a process decodes which this test starts.
const memoryChild = "REST_MEMORY_TEST_BODY"

// maxHeap bounds the heap of a process that decodes one answer, in MiB. Before
// listings were decoded while they arrive, it was between 600 and 7,700. 100,000 servers take
// 60 MiB while their list grows, and what is garbage by then about as much on a busy machine.
const maxHeap = 200

// repeated is an endless body: a start, and then one part again and again.
type repeated struct {
	start, part string
	// parts limits how often part comes; 0 for without end.
	parts int
	end   string
}

func (r repeated) WriteTo(w io.Writer) (int64, error) {
	chunk := strings.Repeat(r.part, 1+(64<<10)/len(r.part))
	if r.parts > 0 {
		chunk = r.part
	}
	_, err := io.WriteString(w, r.start)
	for n := 0; err == nil && (r.parts == 0 || n < r.parts); n++ {
		_, err = io.WriteString(w, chunk)
	}
	if err == nil {
		_, err = io.WriteString(w, r.end)
	}
	return 0, err
}

func server(more string) string { return `{"id":"i-1","name":"web"` + more + `}` }

// hostile are bodies of a listing of servers, with a part of what becomes of them:
// of the error, or empty where they are read.
var hostile = map[string]struct {
	body repeated
	want string
}{
	"empty objects": {repeated{start: "[{}", part: ",{}"}, "it has no id"},
	"small servers": {repeated{start: "[" + server(""), part: "," + server("")}, "more than 100000 servers"},
	"small servers, in an object": {
		repeated{start: `{"servers":[` + server(""), part: "," + server("")}, "more than 100000 servers",
	},
	"as many small servers as are allowed": {repeated{start: "[" + server(""), part: "," + server(""), parts: maxElements - 1, end: "]"}, ""},
	"servers with a label":                 {repeated{start: "[" + server(""), part: "," + server(`,"labels":{"a":"b"}`)}, "more than 48 MiB of memory"},
	"a valid listing of 9 MB": {
		repeated{start: "[" + server(""), part: "," + server(`,"labels":{"a":"`+strings.Repeat("x", 128)+`","b":"c"},"state":"ACTIVE"`), parts: 45_000, end: "]"}, "",
	},
	"servers with hosts of their own":    {repeated{start: "[" + server(""), part: "," + server(`,"host":"`+strings.Repeat("h", 250)+`","template":"`+strings.Repeat("t", 250)+`"`)}, "larger than 32 MiB"},
	"long names":                         {repeated{start: "[" + server(""), part: `,{"id":"i","name":"` + strings.Repeat("n", 200<<10) + `"}`}, "larger than 32 MiB"},
	"a server with endless labels":       {repeated{start: `[{"id":"i","name":"n","labels":{"a":"b"`, part: `,"a":"b"`}, "larger than 256 KiB"},
	"a server with an endless name":      {repeated{start: `[{"id":"i","name":"`, part: "n"}, "larger than 256 KiB"},
	"nested lists":                       {repeated{part: "["}, "not valid JSON"},
	"nested lists beside the servers":    {repeated{start: `{"x":`, part: "["}, "not valid JSON"},
	"nested objects":                     {repeated{part: `{"a":`}, "not valid JSON"},
	"a long text beside the servers":     {repeated{start: `{"x":"`, part: "x"}, "larger than 256 KiB"},
	"endless fields beside the servers":  {repeated{start: `{"x":0`, part: `,"x":0`}, "more than 200000 values beside the list"},
	"an endless list beside the servers": {repeated{start: `{"x":[0`, part: ",0"}, "more than 200000 values beside the list"},
	"endless space":                      {repeated{part: " "}, "larger than 256 KiB"},
	"an endless number":                  {repeated{start: `[`, part: "1"}, "larger than 256 KiB"},
}

// The process that decodes has a heap of its own, so that its peak is that of one
// answer. The bodies are compressed: some kilobytes become as much as is allowed.
func TestHostileListingTakesBoundedHeap(t *testing.T) {
	if name := os.Getenv(memoryChild); name != "" {
		decodeHostile(t, name)
		return
	}
	t.Parallel()
	for name := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostileListingTakesBoundedHeap$", "-test.timeout=8m")
			cmd.Env = append(os.Environ(), memoryChild+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// decodeHostile lists the servers of a cloud that answers with the named body, and
// checks the peak of this process's heap.
func decodeHostile(t *testing.T, name string) {
	// The collector runs as often as is needed to stay below, if what is kept allows it.
	debug.SetMemoryLimit(64 << 20)
	test := hostile[name]
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err == nil {
			_, _ = test.body.WriteTo(packed)
			_ = packed.Close()
		}
	}), func(cfg *Config) { cfg.Timeout = 7 * time.Minute }).withCapabilities()
	page, err := c.ListServers(t.Context(), cloud.ListServers{})
	switch {
	case test.want == "" && err != nil:
		t.Errorf("%v, want it read", err)
	case test.want != "" && (!cloud.Is(err, cloud.Unreadable) || !strings.Contains(err.Error(), test.want)):
		t.Errorf("%v, want Unreadable with %q", err, test.want)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	// HeapSys never shrinks: it is the largest size that the heap has had.
	if peak := stats.HeapSys >> 20; peak > maxHeap {
		t.Errorf("the heap took %d MiB, want at most %d", peak, maxHeap)
	}
	t.Logf("%d servers, heap %d MiB", len(page.Servers), stats.HeapSys>>20)
}

// A cloud has few hosts and networks: less is kept of them.
func TestOtherListingsAreBounded(t *testing.T) {
	t.Parallel()
	const network = `{"id":"n","name":"n","cidr":"c","gateway":"g"}`
	networks := repeated{start: `{"networks":[` + network, part: "," + network}
	hosts := repeated{start: `[{"name":"h","gpu":true}`, part: `,{"name":"h","gpu":true}`}
	read := func(body repeated, decode func(*call, *answer, *stream) *cloud.Error) error {
		from, to := io.Pipe()
		go func() {
			_, err := body.WriteTo(to)
			_ = to.CloseWithError(err)
		}()
		defer func() { _ = from.CloseWithError(errors.New("read enough")) }()
		return asError(decode(listing(), jsonAnswer(""), newStream(from)))
	}
	wantText(t, read(networks, func(call *call, got *answer, in *stream) *cloud.Error {
		_, err := decodeNetworks(call, got, in, nil)
		return err
	}), "list servers: the answer takes more than 8 MiB of memory")
	wantText(t, read(hosts, func(call *call, got *answer, in *stream) *cloud.Error {
		_, err := decodeHosts(call, got, in, nil)
		return err
	}), "list servers: host 2 of the answer: another has its name")
	distinct := func() io.Reader {
		var b bytes.Buffer
		b.WriteByte('[')
		for i := range maxElements + 2 {
			fmt.Fprintf(&b, `{"name":"h-%d","gpu":false},`, i)
		}
		return &b
	}
	_, err := decodeHosts(listing(), jsonAnswer(""), newStream(distinct()), nil)
	wantText(t, asError(err), "list servers: the answer takes more than 8 MiB of memory")
}

// What arrives after the bound is not read: the cloud sends without end.
func TestEndlessListingIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = repeated{start: "[", part: server("") + ","}.WriteTo(w)
		<-r.Context().Done()
		close(ended)
	})).withCapabilities()
	wantText(t, verbs["list"](t.Context(), c), "list servers: the answer holds more than 100000 servers")
	<-ended
}

// A page that is cut short is read again, as before it was decoded while it arrives.
func TestCutListingIsReadAgain(t *testing.T) {
	t.Parallel()
	cut := reply{status: 200, body: `[{"id":"i-1","name":"web"}`, header: map[string]string{"Content-Length": "100"}}
	answers := answering(cut, reply{status: 200, body: `[{"id":"i-1","name":"web"}]`})
	c := serve(t, answers).withCapabilities()
	got, err := c.ListServers(t.Context(), cloud.ListServers{})
	if err != nil || len(got.Servers) != 1 || answers.count() != 2 {
		t.Errorf("%v, servers %v, %d requests; want one server from two", err, got.Servers, answers.count())
	}
	wantText(t, verbs["list"](t.Context(), serve(t, answering(cut)).withCapabilities()), "list servers: the answer was cut short")
}

package vsphere_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// vcenter is a simulator of a vCenter with a folder "op", and a template "small" beside
// it. Requests go through a front that counts them and can lose answers.
type vcenter struct {
	model *simulator.Model
	admin *govmomi.Client
	front *front
	url   string
}

// newVCenter starts a simulator that ends with the test.
func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	model, server := newSimulator(t)
	v := &vcenter{model: model, front: newFront(server.URL.Host)}
	before := httptest.NewServer(v.front)
	v.url = before.URL + "/sdk"
	t.Cleanup(func() {
		before.Close()
		server.Close()
		model.Remove()
	})
	template := model.Map().Any("VirtualMachine").(*simulator.VirtualMachine)
	template.Config.Template, template.Summary.Config.Template = true, true
	template.Name, template.Config.Name = "small", "small"
	var err error
	if v.admin, err = govmomi.NewClient(t.Context(), server.URL, true); err != nil {
		t.Fatalf("log in to the simulator: %v", err)
	}
	v.makeFolder(t, "op")
	v.front.starts = v.start
	return v
}

var taskRef = regexp.MustCompile(`type="Task">([^<]+)<`)

// start waits until a clone has ended, and starts its VM.
func (v *vcenter) start(answer string) {
	found := taskRef.FindStringSubmatch(answer)
	if found == nil {
		return
	}
	task := object.NewTask(v.admin.Client, types.ManagedObjectReference{Type: "Task", Value: found[1]})
	info, err := task.WaitForResult(context.Background())
	if err != nil {
		return // the clone failed
	}
	made := info.Result.(types.ManagedObjectReference)
	v.model.Map().AtomicUpdate(v.model.Service.Context, v.model.Map().Get(made), []types.PropertyChange{{Name: "runtime.maxCpuUsage", Val: int32(4000)}})
	vm := object.NewVirtualMachine(v.admin.Client, made)
	if started, err := vm.PowerOn(context.Background()); err == nil {
		_ = started.Wait(context.Background())
	}
}

// making is held while a simulator is made, which changes variables of its package.
var making sync.Mutex

func newSimulator(t *testing.T) (*simulator.Model, *simulator.Server) {
	t.Helper()
	making.Lock()
	defer making.Unlock()
	model := simulator.VPX()
	model.Machine, model.Host, model.ClusterHost, model.Cluster = 1, 0, 3, 1
	if err := model.Create(); err != nil {
		t.Fatalf("make the simulator: %v", err)
	}
	model.Service.TLS = nil
	return model, model.Service.NewServer()
}

func (v *vcenter) makeFolder(t *testing.T, name string) *object.Folder {
	t.Helper()
	datacenter, err := find.NewFinder(v.admin.Client).DefaultDatacenter(t.Context())
	if err != nil {
		t.Fatalf("find the datacenter: %v", err)
	}
	folders, err := datacenter.Folders(t.Context())
	if err != nil {
		t.Fatalf("find the folders: %v", err)
	}
	made, err := folders.VmFolder.CreateFolder(t.Context(), name)
	if err != nil {
		t.Fatalf("make folder %s: %v", name, err)
	}
	return made
}

// config returns that of a client of the simulator, changed.
func (v *vcenter) config(change ...func(*vsphere.Config)) vsphere.Config {
	cfg := vsphere.Config{
		Name: "vcsim", Endpoint: v.url, Credentials: vsphere.Credentials{Username: "user", Password: "pass"},
		Limits: transport.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 64},
		Place: vsphere.Place{
			Datacenter: "DC0", Folder: "op", ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0", TemplateFolder: "/DC0/vm", DefaultTemplate: "small",
		},
	}
	for _, apply := range change {
		apply(&cfg)
	}
	return cfg
}

// client returns a client that is closed with the test.
func (v *vcenter) client(t *testing.T, change ...func(*vsphere.Config)) *vsphere.Client {
	t.Helper()
	c, err := vsphere.New(v.config(change...))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	return c
}

var soapMethod = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)

// front passes requests on to the simulator.
type front struct {
	to http.Handler

	mu     sync.Mutex
	counts map[string]int
	// lost are the methods whose answers are lost. rewrite changes requests; nil if they
	// are passed on as they are. random loses any answer if it returns true.
	lost    map[string]bool
	rewrite func(method, body string) string
	random  func() bool
	// starts is called with the answer to a clone of which the VM is to be started: the
	// simulator leaves it stopped.
	starts func(answer string)
}

func newFront(host string) *front {
	return &front{to: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host}), counts: map[string]int{}, lost: map[string]bool{}}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := ""
	if found := soapMethod.FindSubmatch(body); found != nil {
		method = string(found[1])
	}
	f.mu.Lock()
	f.counts[method]++
	lost := f.lost[method] || f.random != nil && f.random()
	rewrite, starts := f.rewrite, f.starts
	f.mu.Unlock()
	if rewrite != nil {
		body = []byte(rewrite(method, string(body)))
		r.ContentLength = int64(len(body))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	f.to.ServeHTTP(answer, r)
	if starts != nil && method == "CloneVM_Task" && strings.Contains(string(body), "<powerOn>true</powerOn>") {
		starts(answer.Body.String())
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w)
}

// sent returns how many requests of a method came, of all methods if it is empty.
func (f *front) sent(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method != "" {
		return f.counts[method]
	}
	all := 0
	for _, n := range f.counts {
		all += n
	}
	return all
}

// lose loses the answers of the methods, until restore is called.
func (f *front) lose(methods ...string) (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, method := range methods {
		f.lost[method] = true
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.lost)
	}
}

var pool = regexp.MustCompile(`<pool[^>]*>[^<]*</pool>`)

// failClones makes clones fail after they were accepted, until restore is called.
func (f *front) failClones() (restore func()) {
	f.setRewrite(func(method, body string) string {
		if method != "CloneVM_Task" {
			return body
		}
		return pool.ReplaceAllString(body, "")
	})
	return func() { f.setRewrite(nil) }
}

func (f *front) setRewrite(rewrite func(method, body string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewrite = rewrite
}

func longName() string { return strings.Repeat("x", 81) }

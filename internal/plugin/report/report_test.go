package report

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// marker is in everything that must not be in a bundle, and host is that of a Cloud.
const (
	marker = "M4RK3R"
	host   = "m4rk3r.cloud.example.com"
)

func scheme(t *testing.T) *kruntime.Scheme {
	t.Helper()
	s, err := plugin.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func metadata(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": marker, "team.example.com/token": marker, pcapi.ClaimedNameAnnotation: "kept-annotation"},
	}
}

func failing(message string) []metav1.Condition {
	return []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Message: message}}
}

// secretObjects are objects of all kinds with secrets in all places where there may be some.
func secretObjects() []client.Object {
	bootstrap := &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{
		UserDataSecretRef: &pcapi.SecretKeyReference{Name: marker}, SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{"ssh-ed25519 " + marker},
	}}
	message := fmt.Sprintf(`Get "https://%s/x": dial tcp: lookup %s on 10.0.0.1:53: refused, password=%s`, host, host, marker)
	labels := map[string]string{"app.kubernetes.io/name": "private-cloud-operator"}
	pod := &corev1.Pod{ObjectMeta: metadata("operators", "manager-1"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "manager", Args: []string{"--default-cloud-endpoint=https://user:" + marker + "@" + host}, Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: marker}, {Name: "POD_NAMESPACE", Value: "kept-env"}},
	}}}}
	pod.Labels = labels
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 1}}
	return []client.Object{
		&pcapi.Cloud{ObjectMeta: metadata("", "east"), Spec: pcapi.CloudSpec{Endpoint: "https://" + host + "/api"}, Status: pcapi.CloudStatus{Capabilities: []string{"labels"}, Conditions: failing(message)}},
		&pcapi.VM{ObjectMeta: metadata("a", "one"), Spec: pcapi.VMSpec{VMName: "one", Bootstrap: bootstrap}, Status: pcapi.VMStatus{Conditions: failing(message)}},
		&pcapi.VM{ObjectMeta: metadata("b", "two")},
		&pcapi.VmGroup{ObjectMeta: metadata("a", "web"), Spec: pcapi.VmGroupSpec{Bootstrap: bootstrap}},
		&pcapi.Network{ObjectMeta: metadata("a", "net")},
		&pcapi.VMSnapshot{ObjectMeta: metadata("a", "snap")},
		&pcapi.VMConsoleRequest{ObjectMeta: metadata("a", "console")},
		&pcapi.VMClass{ObjectMeta: metadata("", "small")},
		&pcapi.GPUInfo{ObjectMeta: metadata("a", "gpu")},
		&corev1.Event{ObjectMeta: metadata("a", "event"), InvolvedObject: corev1.ObjectReference{APIVersion: pcapi.GroupVersion.String(), Kind: "VM", Name: "one"}, Message: message},
		&corev1.Event{ObjectMeta: metadata("a", "other"), InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}, Message: "not-ours"},
		&corev1.Secret{ObjectMeta: metadata("operators", "credentials"), Data: map[string][]byte{"token": []byte(marker)}},
		pod,
	}
}

// served is a manager with secrets in its metrics.
func served(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "privatecloud_up{endpoint=\"https://%s\"} 1\nkept_metric 7\n", host)
			return
		}
		fmt.Fprint(w, `{"version":"v9.9.9","leading":true}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// cluster returns a source with objects, logs and a manager.
func cluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *source {
	t.Helper()
	address := served(t)
	return &source{
		client:  fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(),
		version: func() (string, error) { return "v1.37.0", nil },
		logs: func(_ context.Context, _, _ string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
			lines := []string{
				fmt.Sprintf(`{"level":"info","msg":"kept-log previous=%t"}`, o.Previous),
				`{"level":"error","error":"Get \"https://` + host + `/\": token: ` + marker + `"}`,
				`2026-01-02T03:04:05Z {"level":"error","error":"no ` + strings.ReplaceAll(host, ".", `\u002e`) + `"}`,
				"-----BEGIN PRIVATE KEY-----", marker, "-----END PRIVATE KEY-----",
				"-----BEGIN PRIVATE KEY-----", marker, "a key that was cut off is followed by this: kept",
				strings.Repeat("x", maxLine) + marker,
				"after the long line, without an end",
			}
			return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
		},
		operator: func(ctx context.Context, _ operator.Flags) (*operator.Operator, error) {
			return operator.Connect(ctx, nil, operator.Flags{URL: address})
		},
	}
}

// collected writes a bundle and returns its files and its progress.
func collected(t *testing.T, from *source, namespace string) (files map[string]string, progress string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.zip")
	var out bytes.Buffer
	env := plugin.NewEnv(genericiooptions.IOStreams{ErrOut: &out}, "v1.2.3")
	if err := write(t.Context(), from, options{namespace: namespace, operatorNamespace: "operators", since: time.Hour, tail: 10, file: path}, env); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want no other file than the bundle", entries, err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files = map[string]string{}
	for _, f := range archive.File {
		reader, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files, out.String()
}

func manifestOf(t *testing.T, files map[string]string) manifest {
	t.Helper()
	var m manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReportHasNoSecrets(t *testing.T) {
	files, progress := collected(t, cluster(t, interceptor.Funcs{}, secretObjects()...), "")
	for name, text := range files {
		for _, secret := range []string{marker, host} {
			if i := strings.Index(strings.ToLower(text), strings.ToLower(secret)); i >= 0 {
				t.Errorf("%s has %s: …%s…", name, secret, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
	if strings.Contains(strings.ToLower(progress), strings.ToLower(marker)) {
		t.Errorf("the progress has secrets:\n%s", progress)
	}
	for name, want := range map[string]string{
		"objects/vms.json": "kept-annotation", "objects/clouds.json": `"labels"`, "operator/pods.json": "kept-env", "events.json": "lookup REDACTED",
		"operator/logs/manager-1/manager.log": "kept-log previous=false", "operator/logs/manager-1/manager.previous.log": "kept-log previous=true", "versions.json": "v9.9.9",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s lacks %s:\n%s", name, want, files[name])
		}
	}
	if !strings.Contains(files["operator/logs/manager-1/manager.log"], "is left out)\nafter the long line") {
		t.Errorf("the log does not go on after a long line")
	}
	if !strings.Contains(files["operator/logs/manager-1/manager.log"], "followed by this: kept") {
		t.Errorf("a key without an end hides the rest of the log")
	}
	if strings.Contains(files["events.json"], "not-ours") {
		t.Error("an event about an object of others is in the bundle")
	}
	metrics := ""
	for name, text := range files {
		if strings.HasPrefix(name, "operator/metrics/") {
			metrics += text
		}
	}
	if !strings.Contains(metrics, "kept_metric 7") {
		t.Errorf("metrics: %q", metrics)
	}
}

func TestReportListsWhatItHas(t *testing.T) {
	files, _ := collected(t, cluster(t, interceptor.Funcs{}, secretObjects()...), "a")
	counts := map[string]int{}
	var listed []string
	for _, f := range manifestOf(t, files).Files {
		listed = append(listed, f.Name)
		if strings.HasPrefix(f.Name, "objects/") {
			counts[strings.TrimSuffix(f.Name[len("objects/"):], ".json")] = f.Objects
		}
		if f.Bytes != int64(len(files[f.Name])) {
			t.Errorf("%s: %d bytes are listed, and it has %d", f.Name, f.Bytes, len(files[f.Name]))
		}
	}
	want := map[string]int{"clouds": 1, "vms": 1, "vmgroups": 1, "networks": 1, "vmsnapshots": 1, "vmconsolerequests": 1, "vmclasses": 1, "gpuinfos": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("objects of namespace a (-want +got):\n%s", diff)
	}
	var has []string
	for name := range files {
		if name != "manifest.json" {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	slices.Sort(listed)
	if diff := cmp.Diff(has, listed); diff != "" {
		t.Errorf("files (-bundle +manifest):\n%s", diff)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(files["objects/vms.json"]), &list); err != nil || len(list.Items) != 1 {
		t.Errorf("vms.json: %d objects, %v", len(list.Items), err)
	}
}

func TestReportWithoutRights(t *testing.T) {
	denied := func(what string) error {
		return apierrors.NewForbidden(pcapi.GroupVersion.WithResource(what).GroupResource(), "", errors.New("no right"))
	}
	from := cluster(t, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return denied(list.GetObjectKind().GroupVersionKind().Kind)
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return denied(key.Name)
		},
	})
	from.operator = func(context.Context, operator.Flags) (*operator.Operator, error) { return nil, denied("pods") }
	files, _ := collected(t, from, "")
	left := map[string]bool{}
	for _, l := range manifestOf(t, files).LeftOut {
		left[l.What] = l.Why != ""
	}
	for _, want := range []string{"objects/vms.json", "objects/clouds.json", "crds.json", "events.json", "operator/pods.json", "operator/logs", "operator/metrics", "versions.json: of the operator"} {
		if !left[want] {
			t.Errorf("manifest.json does not say why %s is left out", want)
		}
	}
}

func TestLogsAreLeftOutIfTheEndpointsAreNotKnown(t *testing.T) {
	files, _ := collected(t, cluster(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, clouds := list.(*pcapi.CloudList); clouds {
				return errors.New("no right")
			}
			return c.List(ctx, list, options...)
		},
	}, secretObjects()...), "")
	for name := range files {
		if strings.HasPrefix(name, "operator/logs/") || strings.HasPrefix(name, "operator/metrics/") {
			t.Errorf("%s is in the bundle", name)
		}
	}
}

func TestReportIsWholeOrNotThere(t *testing.T) {
	o := options{operatorNamespace: "operators", since: time.Hour, tail: 1}
	env := plugin.NewEnv(genericiooptions.IOStreams{ErrOut: io.Discard}, "v1.2.3")
	t.Run("interrupted", func(t *testing.T) {
		o.file = filepath.Join(t.TempDir(), "bundle.zip")
		ctx, interrupt := context.WithCancel(t.Context())
		from := cluster(t, interceptor.Funcs{List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			interrupt()
			return ctx.Err()
		}})
		if err := write(ctx, from, o, env); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that it was canceled", err)
		}
		if entries, err := os.ReadDir(filepath.Dir(o.file)); err != nil || len(entries) > 0 {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
	t.Run("the file appears meanwhile: it stays", func(t *testing.T) {
		o.file = filepath.Join(t.TempDir(), "bundle.zip")
		from := cluster(t, interceptor.Funcs{})
		from.version = func() (string, error) { return "", os.WriteFile(o.file, []byte("mine"), 0o600) }
		if err := write(t.Context(), from, o, env); err == nil || !strings.Contains(err.Error(), "name another with --file") {
			t.Errorf("got %v", err)
		}
		if text, err := os.ReadFile(o.file); err != nil || string(text) != "mine" {
			t.Errorf("the file is %q, %v", text, err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		o.file = filepath.Join(t.TempDir(), "none", "bundle.zip")
		if err := write(t.Context(), cluster(t, interceptor.Funcs{}), o, env); err == nil {
			t.Error("got no error")
		}
	})
}

// TestReportOfManyObjectsNeedsBoundedMemory lists 50,000 VMs, of which the API server keeps none.
func TestReportOfManyObjectsNeedsBoundedMemory(t *testing.T) {
	const pages, perPage = 100, 500
	var heaps []uint64
	from := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		many, ok := list.(*unstructured.UnstructuredList)
		if !ok || many.GetKind() != "VMList" {
			return c.List(ctx, list, options...)
		}
		var o client.ListOptions
		o.ApplyOptions(options)
		page := 0
		if o.Continue != "" {
			var err error
			if page, err = strconv.Atoi(o.Continue); err != nil {
				return err
			}
		}
		many.Items = nil
		if page%20 == 0 {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			heaps = append(heaps, stats.HeapAlloc)
		}
		for i := range perPage {
			many.Items = append(many.Items, unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"namespace": "a", "name": fmt.Sprintf("vm-%d-%d", page, i)}, "status": map[string]any{"text": strings.Repeat("y", 2000)},
			}})
		}
		many.SetContinue("")
		page++
		if page < pages {
			many.SetContinue(fmt.Sprint(page))
		}
		return nil
	}})
	files, _ := collected(t, from, "")
	if got := strings.Count(files["objects/vms.json"], `"name":"vm-`); got != pages*perPage {
		t.Errorf("%d VMs are in the bundle, want %d", got, pages*perPage)
	}
	if first, last := heaps[1], heaps[len(heaps)-1]; last > first+16<<20 {
		t.Errorf("the heap grew from %d to %d bytes", first, last)
	}
}

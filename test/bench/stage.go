package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// namespace is the namespace of most objects.
	namespace = "bench"
	// coreCloud is the Cloud with the core profile. The default Cloud has the extended
	// profile.
	coreCloud = "core"
	// creators is the number of concurrent creates or deletes.
	creators = 32
	// waitTimeout is the timeout of each wait, and waitPerVM what a wait for VMs has in
	// addition for each of them.
	waitTimeout = 3 * time.Minute
	waitPerVM   = 50 * time.Millisecond
	// defaultSettleTime is that of a Cloud.
	defaultSettleTime = 2 * time.Minute
)

// stage has the processes that are measured.
type stage struct {
	options options
	folder  string
	env     *testkit.Env
	config  *rest.Config
	client  client.WithWatch
	audit   auditLog
	cloud   *mock
	core    *mock
	// others are the clouds that a part adds.
	others []*mock
	// starts is the number of starts of the operator.
	starts int
}

func newStage(ctx context.Context, o options) (*stage, error) {
	say("starting the API server and the mock cloud")
	folder, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for logs: %w", err)
	}
	s := &stage{options: o, folder: folder, audit: auditLog{path: filepath.Join(folder, "audit.log")}}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *stage) start(ctx context.Context) error {
	policy := filepath.Join(s.folder, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	var err error
	s.env, err = testkit.Start(testkit.Options{APIServerFlags: map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {s.audit.path}, "audit-log-mode": {"blocking"}, "audit-log-maxsize": {"4096"},
	}})
	if err != nil {
		return err
	}
	s.config = rest.CopyConfig(s.env.Config)
	s.config.QPS, s.config.UserAgent = -1, string(bench)
	if s.client, err = client.NewWithWatch(s.config, client.Options{Scheme: s.env.Client.Scheme()}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if s.cloud, err = startMock(ctx, s.options, s.folder, "mockcloud"); err != nil {
		return err
	}
	if s.core, err = startMock(ctx, s.options, s.folder, "mockcloud-core", "--profile=core"); err != nil {
		return err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		newCloud(pcapi.DefaultCloudName, s.cloud), newCloud(coreCloud, s.core),
	} {
		if err := s.client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// newCloud returns a Cloud with high limits, so that the cost of the operator is
// measured, not the limits.
func newCloud(name string, at *mock) *pcapi.Cloud {
	return &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeREST, Endpoint: at.url, UtilizationStep: 1,
		Limits: pcapi.CloudLimits{RequestsPerSecond: 10_000, Burst: 10_000, MaxInFlight: 64},
	}}
}

// pollEvery sets the poll interval of both clouds. Their settle time is the default.
func (s *stage) pollEvery(ctx context.Context, interval time.Duration) error {
	return s.configure(ctx, interval, defaultSettleTime)
}

// configure sets the poll interval and the settle time of both clouds.
func (s *stage) configure(ctx context.Context, interval, settleTime time.Duration) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"pollInterval":%q,"settleTime":%q}}`, interval, settleTime))
	for _, name := range []string{pcapi.DefaultCloudName, coreCloud} {
		if err := s.client.Patch(ctx, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch); err != nil {
			return fmt.Errorf("configuring Cloud %s: %w", name, err)
		}
	}
	return nil
}

func (s *stage) mocks() []*mock { return append([]*mock{s.cloud, s.core}, s.others...) }

func (s *stage) stop() error {
	var errs []error
	for _, m := range s.mocks() {
		if m != nil && m.process != nil {
			errs = append(errs, m.stop())
		}
	}
	if s.env != nil {
		errs = append(errs, s.env.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

// polled waits until a cloud has been listed twice from now on.
func (s *stage) polled(ctx context.Context, m *mock) error {
	calls, err := m.calls(ctx)
	if err != nil {
		return err
	}
	return s.listed(ctx, m, len(listings(calls))+2)
}

// listed waits until a cloud has been listed a number of times since the last
// forget.
func (s *stage) listed(ctx context.Context, m *mock, times int) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		calls, err := m.calls(ctx)
		return len(listings(calls)) >= times, err
	})
	if err != nil {
		return fmt.Errorf("waiting for listing %d of the cloud: %w", times, err)
	}
	return nil
}

// each calls do with 0 … n-1 in several goroutines and returns their errors.
func each(n int, do func(int) error) error {
	next, failed := make(chan int), make(chan error, creators)
	for range creators {
		go func() {
			var first error
			for i := range next {
				if first == nil {
					first = do(i)
				}
			}
			failed <- first
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	var errs []error
	for range creators {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func newVM(prefix string, i int, cloud string) *pcapi.VM {
	name := fmt.Sprintf("%s-%05d", prefix, i)
	return &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       pcapi.VMSpec{VMName: name, CloudRef: &pcapi.CloudReference{Name: cloud}},
	}
}

// follower watches VM objects.
type follower struct {
	events watch.Interface
	prefix string
}

// follow watches the VM objects of a prefix from now on.
func (s *stage) follow(ctx context.Context, prefix string) (*follower, error) {
	return s.followIn(ctx, namespace, prefix)
}

func (s *stage) followIn(ctx context.Context, namespace, prefix string) (*follower, error) {
	events, _, err := informed(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			var list pcapi.VMList
			err := s.client.List(ctx, &list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return s.client.Watch(ctx, &pcapi.VMList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
		},
	})
	return &follower{events: events, prefix: prefix}, err
}

// informed returns the events of VMs from an informer, which lists them again when the API
// server has dropped the version from which a watch is to go on. known are the keys of the
// VMs that exist already, of which there are events as well.
func informed(ctx context.Context, vms *cache.ListWatch) (events watch.Interface, known map[string]bool, err error) {
	indexer, informer, events, _ := watchtools.NewIndexerInformerWatcher(vms, &pcapi.VM{})
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		events.Stop()
		return nil, nil, fmt.Errorf("listing VMs: %w", ctx.Err())
	}
	known = map[string]bool{}
	for _, key := range indexer.ListKeys() {
		known[key] = true
	}
	return events, known, nil
}

// ready waits until n VMs are Ready.
func (f *follower) ready(ctx context.Context, n int) error {
	return f.count(ctx, n, "ready", func(event watch.Event, vm *pcapi.VM) bool {
		return event.Type != watch.Deleted && meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition)
	})
}

// gone waits until n VMs are deleted.
func (f *follower) gone(ctx context.Context, n int) error {
	return f.count(ctx, n, "deleted", func(event watch.Event, _ *pcapi.VM) bool { return event.Type == watch.Deleted })
}

func (f *follower) count(ctx context.Context, n int, what string, counts func(watch.Event, *pcapi.VM) bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout+time.Duration(n)*waitPerVM)
	defer cancel()
	observed := map[string]bool{}
	var last *pcapi.VM
	for {
		select {
		case event, open := <-f.events.ResultChan():
			vm, ok := event.Object.(*pcapi.VM)
			switch {
			case !open || !ok:
				return fmt.Errorf("watching VMs, %d of %d are %s: the watch ended: %v", len(observed), n, what, event.Object)
			case !strings.HasPrefix(vm.Name, f.prefix+"-"):
				continue
			case counts(event, vm):
				observed[vm.Name] = true
			default:
				last = vm
			}
			if len(observed) == n {
				return nil
			}
		case <-ctx.Done():
			var status any
			if last != nil {
				status = last.Status
			}
			return fmt.Errorf("%d of %d VMs are %s; the status of the last other VM is %+v: %w", len(observed), n, what, status, ctx.Err())
		}
	}
}

func (f *follower) stop() { f.events.Stop() }

// create creates VM objects concurrently and waits until all are Ready.
func (s *stage) create(ctx context.Context, prefix string, n int, cloud string) error {
	f, err := s.follow(ctx, prefix)
	if err != nil {
		return err
	}
	defer f.stop()
	if err := s.put(ctx, prefix, n, cloud); err != nil {
		return err
	}
	return f.ready(ctx, n)
}

// put creates VM objects concurrently, with the clouds in turn.
func (s *stage) put(ctx context.Context, prefix string, n int, clouds ...string) error {
	return each(n, func(i int) error { return s.client.Create(ctx, newVM(prefix, i, clouds[i%len(clouds)])) })
}

// remove deletes VM objects concurrently and waits until all are deleted.
func (s *stage) remove(ctx context.Context, prefix string, n int) error {
	f, err := s.follow(ctx, prefix)
	if err != nil {
		return err
	}
	defer f.stop()
	err = each(n, func(i int) error { return s.client.Delete(ctx, newVM(prefix, i, "")) })
	if err != nil {
		return err
	}
	return f.gone(ctx, n)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// vcenterFolder is the VM folder of the operator.
const vcenterFolder = "vm-operator"

// vcenter is govmomi's simulator of a vCenter, in a process of its own.
type vcenter struct {
	*process
	url, admin string
}

func startVCenter(ctx context.Context, o options, folder, name string, args ...string) (*vcenter, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	v := &vcenter{url: "http://" + address + "/sdk", admin: "http://" + admin}
	args = append([]string{"--listen=" + address, "--admin=" + admin, "--folder=" + vcenterFolder}, args...)
	v.process, err = start(ctx, name, o.vcsim, filepath.Join(folder, name+".log"), v.admin+"/calls", nil, args...)
	return v, err
}

// calls returns the calls since the last forget by kind.
func (v *vcenter) calls(ctx context.Context) (soapCalls, error) {
	data, err := fetch(ctx, v.admin+"/calls")
	if err != nil {
		return nil, err
	}
	var calls soapCalls
	err = json.Unmarshal(data, &calls)
	return calls, err
}

func (v *vcenter) forget(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, v.admin+"/calls", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return err
}

// soapCalls are numbers of calls by kind.
type soapCalls map[string]int

// pollKinds are calls of a listing, of the check of the Cloud before it, and of a watch;
// siteKinds, their prefixes, are reads of what the Cloud's spec names.
var (
	pollKinds = []string{
		vcsim.ListCall, vcsim.NextCall, vcsim.TemplatesCall, "Login", "RetrieveServiceContent", "GetCurrentTime", "CurrentTime",
		"WaitForUpdatesEx", "CreateFilter", "DestroyPropertyFilter", "CreateContainerView", "CreateListView", "ModifyListView", "DestroyView",
		"CreatePropertyCollector", "DestroyPropertyCollector", "CancelWaitForUpdates",
	}
	sitePrefix = "RetrieveProperties: "
)

// split returns the calls for VMs, and those of polls.
func (c soapCalls) split() (own, polls soapCalls) {
	own, polls = soapCalls{}, soapCalls{}
	for kind, n := range c {
		if slices.Contains(pollKinds, kind) || strings.HasPrefix(kind, sitePrefix) {
			polls[kind] = n
		} else {
			own[kind] = n
		}
	}
	return own, polls
}

func (c soapCalls) total() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// newVSphereCloud returns a Cloud of the vCenter with the limits of newCloud.
func newVSphereCloud(name string, at *vcenter) *pcapi.Cloud {
	c := newCloud(name, &mock{url: at.url})
	c.Spec.Type, c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = pcapi.CloudTypeVSphere, &pcapi.SecretReference{Name: name}, true
	c.Spec.VSphere = &pcapi.VSphereCloud{
		Datacenter: "DC0", Folder: vcenterFolder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
		Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template},
	}
	return c
}

// connect creates a Cloud of the vCenter, and its Secret.
func (s *stage) connect(ctx context.Context, name string, at *vcenter) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	}
	if err := s.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the Secret of Cloud %s: %w", name, err)
	}
	if err := s.client.Create(ctx, newVSphereCloud(name, at)); err != nil {
		return fmt.Errorf("creating Cloud %s: %w", name, err)
	}
	return nil
}

// during returns the calls while do runs.
func (v *vcenter) during(ctx context.Context, do func() error) (soapCalls, error) {
	if err := v.forget(ctx); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	return v.calls(ctx)
}

func (c soapCalls) plus(other soapCalls) soapCalls {
	sum := maps.Clone(c)
	if sum == nil {
		sum = soapCalls{}
	}
	for kind, n := range other {
		sum[kind] += n
	}
	return sum
}

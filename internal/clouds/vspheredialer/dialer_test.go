package vspheredialer

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// vcenter returns a Cloud of type VSphere, changed.
func vcenter(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeVSphere, Endpoint: "https://vcenter.test/sdk", VSphere: &pcapi.VSphereCloud{Folder: "vm-operator"},
	}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func secret(data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "login"}, Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func TestConfigFollowsTheSpecAndTheSecret(t *testing.T) {
	c := vcenter(func(c *pcapi.Cloud) {
		c.Spec.InsecureSkipTLSVerify = true
		c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7}
		c.Spec.VSphere = &pcapi.VSphereCloud{
			Datacenter: "DC0", Folder: "vm-operator", ResourcePool: "pool", Datastore: "vsan", CloneMode: pcapi.CloneModeLinked,
			Templates: pcapi.VSphereTemplates{Folder: "templates", Default: "debian"}, Networks: pcapi.VSphereNetworks{Default: "VM Network"},
			Zones: []pcapi.VSphereZone{{Name: "a", ResourcePool: "pool-a", Datastore: "vsan-a"}, {Name: "b", ResourcePool: "pool-b"}},
		}
	})
	got, err := Dialer{Base: vsphere.Config{Version: "v1", Timeout: time.Minute}}.config(c, secret("username", "u", "password", "p", "ca.crt", "CA"))
	if err != nil {
		t.Fatalf("config: %v", err)
	}
	want := vsphere.Config{
		Name: "home", Endpoint: "https://vcenter.test/sdk", InsecureSkipVerify: true, Version: "v1", Timeout: time.Minute, CA: []byte("CA"),
		Credentials: vsphere.Credentials{Username: "u", Password: "p"}, Limits: transport.Limits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7},
		Place: vsphere.Place{
			Datacenter: "DC0", Folder: "vm-operator", ResourcePool: "pool", Datastore: "vsan", TemplateFolder: "templates", DefaultTemplate: "debian",
			LinkedClones: true, Network: "VM Network", Zones: []vsphere.Zone{{Name: "a", ResourcePool: "pool-a", Datastore: "vsan-a"}, {Name: "b", ResourcePool: "pool-b"}},
		},
	}
	sameCredentials := cmp.Comparer(func(a, b vsphere.Credentials) bool { return a.Username == b.Username && a.Password == b.Password })
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(vsphere.Config{}, "Log"), sameCredentials); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestDialRefusesWhatCannotWork(t *testing.T) {
	password := secret("username", "u", "password", "secret-word")
	tests := map[string]struct {
		cloud  *pcapi.Cloud
		secret *corev1.Secret
		says   string
	}{
		"no block vsphere":                {vcenter(func(c *pcapi.Cloud) { c.Spec.VSphere = nil }), password, "spec.vsphere is missing"},
		"no Secret":                       {vcenter(), nil, "name a Secret in spec.credentialsSecretRef"},
		"a Secret without credentials":    {vcenter(), secret("ca.crt", "CA"), `Secret "login" in namespace "operator": credentials: none are given`},
		"a Secret with two kinds of them": {vcenter(), secret("username", "u", "password", "secret-word", "token", "<Assertion/>"), "of several kinds"},
		"no password":                     {vcenter(), secret("username", "u"), "need both username and password"},
		"a token that is no assertion":    {vcenter(), secret("token", "secret-word"), "no SAML assertion"},
		"a certificate that is no PEM":    {vcenter(), secret("tls.crt", "secret-word", "tls.key", "secret-word"), "no PEM certificate with its key"},
		"http":                            {vcenter(func(c *pcapi.Cloud) { c.Spec.Endpoint = "http://vcenter.test/sdk" }), password, "over https only"},
		"an endpoint that is no URL":      {vcenter(func(c *pcapi.Cloud) { c.Spec.Endpoint = "vcenter" }), password, "endpoint: must begin with https://"},
		"a CA that is no PEM":             {vcenter(), secret("username", "u", "password", "secret-word", "ca.crt", "x"), "ca.crt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Dialer{}.Dial(tc.cloud, tc.secret)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret-word") {
				t.Errorf("%v, want %q in it and no secret", err, tc.says)
			}
		})
	}
}

func TestDialMakesAClient(t *testing.T) {
	client, err := Dialer{}.Dial(vcenter(), secret("username", "u", "password", "p"))
	if err != nil || client == nil {
		t.Fatalf("Dial: %v, %v", client, err)
	}
	client.Close(t.Context())
}

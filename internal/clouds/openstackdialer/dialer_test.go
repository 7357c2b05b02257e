package openstackdialer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// cloudWith returns a Cloud, changed.
func cloudWith(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "zed"}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeOpenStack, Endpoint: "https://keystone.test/v3",
		Limits: pcapi.CloudLimits{RequestsPerSecond: 50, Burst: 100, MaxInFlight: 16},
		OpenStack: &pcapi.OpenStackCloud{
			Region: "R", Project: "p", Domain: "d", Images: pcapi.OpenStackImages{Default: "i"},
			Flavors: pcapi.OpenStackFlavors{Default: "f", Match: pcapi.FlavorMatchAtLeast, Allowed: []string{"m1.*"}}, Network: pcapi.OpenStackNetwork{Default: "auto"}, AvailabilityZone: "z", KeyPair: "k",
		},
	}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func secretWith(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "login"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// aFile is a clouds.yaml with one cloud, to which more lines can be added.
const aFile = `clouds:
  test:
    auth: {auth_url: "https://keystone.test", username: u, password: a-secret-password, project_id: p1, user_domain_id: d1}
    region_name: of-the-file
    interface: internal
    network_endpoint_override: https://network.of.the.file
`

var withPassword = map[string]string{"username": "u", "password": "a-secret-password"}

func TestConfigIsThatOfTheSpecAndTheSecret(t *testing.T) {
	tests := map[string]struct {
		secret map[string]string
		want   openstack.Credentials
		ca     string
	}{
		"username and password": {withPassword, openstack.Credentials{Username: "u", Password: "a-secret-password"}, ""},
		"application credential with a CA": {
			map[string]string{"applicationCredentialId": "i", "applicationCredentialSecret": "s", "ca.crt": "CA"},
			openstack.Credentials{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}, "CA",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Dialer{}.config(cloudWith(), secretWith(tc.secret))
			if err != nil {
				t.Fatalf("config: %v", err)
			}
			if got.Credentials != tc.want || string(got.CA) != tc.ca {
				t.Errorf("credentials and CA differ from those of the Secret")
			}
			want := openstack.Config{
				Name: "zed", Endpoint: "https://keystone.test/v3", Region: "R", Project: "p", Domain: "d", Image: "i", Flavor: "f", Flavors: []string{"m1.*"}, AtLeast: true,
				Network: "auto", Zone: "z", KeyPair: "k", TagLabel: "samplecontroller.k8s.io/uid",
				Limits: transport.Limits{RequestsPerSecond: 50, Burst: 100, MaxInFlight: 16},
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(openstack.Config{}, "Credentials", "CA", "Log")); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsOfTheSpecComeBeforeThoseOfTheFile(t *testing.T) {
	secret := secretWith(map[string]string{"clouds.yaml": aFile, "cacert": "CA"})
	tests := map[string]struct {
		change func(*pcapi.OpenStackCloud)
		want   openstack.Config
	}{
		"nothing in the spec": {
			func(o *pcapi.OpenStackCloud) { *o = pcapi.OpenStackCloud{} },
			openstack.Config{Region: "of-the-file", Interface: openstack.InterfaceInternal, Endpoints: openstack.Endpoints{Network: "https://network.of.the.file"}},
		},
		"all in the spec": {
			func(o *pcapi.OpenStackCloud) {
				*o = pcapi.OpenStackCloud{
					CloudName: "test", Region: "R", Project: "p", Domain: "d", Interface: pcapi.OpenStackInterfaceAdmin,
					Endpoints: pcapi.OpenStackEndpoints{Compute: "https://c", Network: "https://n", Image: "https://i", BlockStorage: "https://b"},
				}
			},
			openstack.Config{
				Region: "R", Project: "p", Domain: "d", Interface: openstack.InterfaceAdmin,
				Endpoints: openstack.Endpoints{Compute: "https://c", Network: "https://n", Image: "https://i", BlockStorage: "https://b"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Dialer{}.config(cloudWith(func(c *pcapi.Cloud) { tc.change(c.Spec.OpenStack) }), secret)
			if err != nil {
				t.Fatalf("config: %v", err)
			}
			credentials := openstack.Credentials{
				Username: "u", Password: "a-secret-password", Project: openstack.Identifier{ID: "p1"}, UserDomain: openstack.Identifier{ID: "d1"},
			}
			if got.Credentials != credentials || string(got.CA) != "CA" || got.AuthURL != "https://keystone.test" {
				t.Errorf("credentials, CA and URL differ from those of the Secret")
			}
			got = openstack.Config{Region: got.Region, Project: got.Project, Domain: got.Domain, Interface: got.Interface, Endpoints: got.Endpoints}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(openstack.Config{}, "Credentials", "Log")); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDialSaysWhatToCorrect(t *testing.T) {
	overHTTP := func(c *pcapi.Cloud) { c.Spec.Endpoint = "http://keystone.test/v3" }
	tests := map[string]struct {
		cloud  *pcapi.Cloud
		secret *corev1.Secret
		says   string
	}{
		"no block":                     {cloudWith(func(c *pcapi.Cloud) { c.Spec.OpenStack = nil }), secretWith(withPassword), "spec.openstack is missing"},
		"no Secret":                    {cloudWith(), nil, "name a Secret in spec.credentialsSecretRef"},
		"an empty Secret":              {cloudWith(), secretWith(nil), `Secret "login" in namespace "operator": it holds neither clouds.yaml`},
		"a token, which REST has":      {cloudWith(), secretWith(map[string]string{"token": "t"}), "it holds neither"},
		"half a credential":            {cloudWith(), secretWith(map[string]string{"password": "a-secret-password"}), "username and password go together"},
		"credentials over http":        {cloudWith(overHTTP), secretWith(withPassword), "over https only"},
		"a password without a project": {cloudWith(func(c *pcapi.Cloud) { c.Spec.OpenStack.Project = "" }), secretWith(withPassword), "openstack.project: is empty"},
		"an endpoint of version 2.0":   {cloudWith(func(c *pcapi.Cloud) { c.Spec.Endpoint = "https://k/v2.0" }), secretWith(withPassword), "version 2.0"},
		"clouds.yaml beside a password": {
			cloudWith(), secretWith(map[string]string{"clouds.yaml": aFile, "password": "a-secret-password"}), "it has both clouds.yaml and other credentials",
		},
		"a name of a cloud without clouds.yaml": {
			cloudWith(func(c *pcapi.Cloud) { c.Spec.OpenStack.CloudName = "prod" }), secretWith(withPassword), "it has no clouds.yaml, and spec.openstack.cloudName",
		},
		"clouds.yaml without the cloud": {
			cloudWith(func(c *pcapi.Cloud) { c.Spec.OpenStack.CloudName = "prod" }), secretWith(map[string]string{"clouds.yaml": aFile}),
			`Secret "login" in namespace "operator": clouds.yaml: has no cloud "prod"`,
		},
		"clouds.yaml for another endpoint": {
			cloudWith(func(c *pcapi.Cloud) { c.Spec.Endpoint = "https://other/v3" }), secretWith(map[string]string{"clouds.yaml": aFile}),
			"clouds.yaml: auth.auth_url is not spec.endpoint, which is https://other/v3",
		},
		"clouds.yaml that skips the verification": {
			cloudWith(), secretWith(map[string]string{"clouds.yaml": aFile + "    verify: false\n"}), "set spec.insecureSkipTLSVerify to true",
		},
		"clouds.yaml with a CA in a file": {
			cloudWith(), secretWith(map[string]string{"clouds.yaml": aFile + "    cacert: /ca.pem\n"}), "put its content into the key ca.crt",
		},
		"clouds.yaml with a CA in a file, and one that is no PEM": {
			cloudWith(), secretWith(map[string]string{"clouds.yaml": aFile + "    cacert: /ca.pem\n", "cacert": "x"}), "ca.crt",
		},
		"a CA that is no PEM": {
			cloudWith(), secretWith(map[string]string{"username": "u", "password": "a-secret-password", "ca.crt": "x"}), "ca.crt",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Dialer{}.Dial(tc.cloud, tc.secret)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "a-secret-password") {
				t.Errorf("%v, want %q and no secret", err, tc.says)
			}
		})
	}
	for name, c := range map[string]*pcapi.Cloud{
		"https": cloudWith(), "http that is allowed": cloudWith(overHTTP, func(c *pcapi.Cloud) { c.Spec.InsecureAllowHTTP = true }),
	} {
		if _, err := (Dialer{}).Dial(c, secretWith(withPassword)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForgetMayBeCalledForAnyCloud(t *testing.T) {
	d := Dialer{Base: openstack.Config{Metrics: transport.NewMetrics(prometheus.NewRegistry()), Holds: transport.NewHolds()}}
	if _, err := d.Dial(cloudWith(), secretWith(withPassword)); err != nil {
		t.Fatalf("Dial: %v", err)
	}
	d.Forget("zed")
	d.Forget("of another type")
	if keys := d.SecretKeys(); !strings.Contains(keys, "applicationCredentialId") || !strings.Contains(keys, "password") {
		t.Errorf("SecretKeys: %s", keys)
	}
}

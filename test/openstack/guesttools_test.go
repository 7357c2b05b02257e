package openstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/clouds/openstackdialer"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/internal/testkit/sshlogin"
	"github.com/privatecloud/operator/test/specs"
)

const (
	// publicRange is the physical network that hack/openstack/run.sh makes. Its router is this machine.
	publicRange, publicGateway = "203.0.113.0/24", "203.0.113.1"
	// firstPublic and lastPublic are the addresses of routers and VMs there.
	firstPublic, lastPublic = "203.0.113.100", "203.0.113.199"
	// knownName is a name that the DNS server of the page knows.
	knownName, knownAddress = "first.example.com", "198.51.100.7"
	// sshPort is where guests are logged in to.
	sshPort = 22
	// dialTime is how long a connection to a guest may take.
	dialTime = 10 * time.Second
	// guestTime only ends what hangs: an emulated guest boots in two minutes on a machine that does nothing else.
	guestTime = 20 * time.Minute
)

// guests reports whether servers are guests, and this process is in the network namespace that their
// physical network ends in.
var guests = os.Getenv("OPENSTACK_NETNS") != ""

// guestCloud is a cluster with a Cloud whose servers are guests.
type guestCloud struct {
	t       *testkit.T
	env     *testkit.Env
	project project
	// as is a user of the project.
	as *administrator
	// page has the manifests of docs/openstack.md.
	page []string
	// key logs in, and authorized is the line of its public half.
	key        ssh.Signer
	authorized string
	began      time.Time
	// server is the id of the guest, whose console is shown if the test fails.
	server string
}

// newGuestCloud makes a project with what the page takes for granted: an image, a flavor, an external
// network, and a security group. It starts the operator, and applies the Cloud of the page.
func newGuestCloud(t *testing.T) *guestCloud {
	t.Helper()
	g := &guestCloud{t: testkit.NewT(t, guestTime, pollTime), project: newProject(t), began: time.Now()}
	g.key, g.authorized = sshlogin.NewKey(t)
	t.Cleanup(func() {
		if t.Failed() && g.server != "" {
			t.Logf("the console of the guest:\n%s", g.console())
		}
	})
	g.readPage()
	g.as = admin().as(tokenOf(t, g.project, person))
	g.image("debian-12", os.Getenv("GUEST_IMAGE"))
	for cpu, flavor := range []string{"m1.small", "m1.medium"} {
		admin().ensure("compute", "flavors", "flavor", map[string]any{"name": flavor, "vcpus": cpu + 1, "ram": 1024, "disk": 3})
	}
	group := g.as.create("network", "security-groups", "security_group", map[string]any{"name": "ssh"})
	g.as.create("network", "security-group-rules", "security_group_rule", map[string]any{
		"security_group_id": group, "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": sshPort, "port_range_max": sshPort,
	})
	g.start()
	var c pcapi.Cloud
	g.read("Cloud", &c)
	c.Spec.Endpoint, c.Spec.InsecureAllowHTTP, c.Spec.OpenStack.Project = os.Getenv("OPENSTACK_AUTH_URL"), true, g.project.name
	c.Spec.PollInterval = metav1.Duration{Duration: 2 * time.Second}
	secret := secretFor(c.Spec.CredentialsSecretRef.Name, map[string]string{"username": user, "password": password})
	secret.Labels[pcapi.CredentialsForLabel] = c.Name
	g.create(secret, &c)
	return g
}

// readPage reads the manifests of docs/openstack.md.
func (g *guestCloud) readPage() {
	g.t.Helper()
	root, err := testkit.ModuleRoot()
	g.t.Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "docs", "openstack.md"))
	g.t.Expect(err).NotTo(HaveOccurred())
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		lines := strings.Split(block, "\n")
		indent := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
		for i, line := range lines {
			lines[i] = line[min(indent, len(line)):]
		}
		g.page = append(g.page, strings.Split(strings.Join(lines, "\n"), "\n---\n")...)
	}
}

// read decodes the first manifest of the page of a kind.
func (g *guestCloud) read(kind string, into client.Object) {
	g.t.Helper()
	for _, manifest := range g.page {
		if strings.Contains(manifest, "\nkind: "+kind+"\n") {
			g.t.Expect(yaml.UnmarshalStrict([]byte(manifest), into)).To(Succeed(), "%s", manifest)
			return
		}
	}
	g.t.Fatalf("docs/openstack.md has no %s", kind)
}

// applyFirstVM applies the Network and the VM of the page, with the key of the test in place of the one
// there, and with user data and a probe.
func (g *guestCloud) applyFirstVM() (*pcapi.Network, *pcapi.VM) {
	g.t.Helper()
	var network pcapi.Network
	g.read("Network", &network)
	var vm pcapi.VM
	g.read("VM", &vm)
	network.Namespace, vm.Namespace = namespace, namespace
	for _, server := range network.Spec.DNSNameservers {
		g.serveNames(string(server))
	}
	named := metav1.ObjectMeta{Namespace: namespace, Name: "boot"}
	secret := &corev1.Secret{ObjectMeta: named, StringData: map[string]string{"user-data": "#!/bin/sh\nhostname >/run/user-data-ran\n"}}
	secret.Labels = map[string]string{pcapi.UserDataLabel: "true"}
	vm.Spec.Bootstrap.CloudInit.UserDataSecretRef = &pcapi.SecretKeyReference{Name: named.Name}
	vm.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys[0] = pcapi.SSHAuthorizedKey(g.authorized)
	vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{TCPSocket: &pcapi.VMTCPSocketProbe{Port: sshPort}, PeriodSeconds: 5}
	g.create(secret, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{named.Name}, Verbs: []string{"get"}},
	}}, &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testkit.OperatorUser(specs.OperatorNamespace)}},
	}, &network, &vm)
	return &network, &vm
}

// start starts an API server with the namespaces of the tests, and the operator, which may connect to
// all guests.
func (g *guestCloud) start() {
	g.t.Helper()
	var err error
	g.env, err = testkit.Start(testkit.Options{})
	g.t.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() { g.t.Expect(g.env.Stop()).To(Succeed()) })
	account, err := g.env.OperatorConfig(g.t.Context(), specs.OperatorNamespace)
	g.t.Expect(err).NotTo(HaveOccurred())
	var network pcapi.Network
	g.read("Network", &network)
	allowed, err := probe.ParseNetworks(network.Spec.CIDR + "," + publicRange)
	g.t.Expect(err).NotTo(HaveOccurred())
	manager, err := testkit.StartManager(account, setup.Options{
		Namespace: specs.OperatorNamespace, Workers: 2, ProbeNetworks: allowed, Dialers: map[pcapi.CloudType]clouds.Dialer{
			pcapi.CloudTypeOpenStack: openstackdialer.Dialer{Base: openstack.Config{Holds: transport.NewHolds()}},
		},
	})
	g.t.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() { g.t.Expect(manager.Stop()).To(Succeed()) })
	g.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": "platform"}}})
}

func (g *guestCloud) create(objects ...client.Object) {
	g.t.Helper()
	for _, object := range objects {
		g.t.Expect(g.env.Client.Create(g.t.Context(), object)).To(Succeed())
	}
}

// remove deletes objects, one after the other, and waits until each is gone.
func (g *guestCloud) remove(objects ...client.Object) {
	g.t.Helper()
	for _, object := range objects {
		g.t.Expect(g.env.Client.Delete(g.t.Context(), object)).To(Succeed())
		g.t.Eventually(func() bool {
			return apierrors.IsNotFound(g.env.Client.Get(g.t.Context(), client.ObjectKeyFromObject(object), object))
		}).Should(BeTrue(), "%s", object.GetName())
	}
}

// storedIn returns a function that reads an object from the API server.
func storedIn[T client.Object](g *guestCloud, object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		read := object.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of the original
		err := g.env.Client.Get(ctx, client.ObjectKeyFromObject(object), read)
		if vm, is := any(read).(*pcapi.VM); is && meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.StalledCondition) {
			return read, StopTrying("the VM stalls").Attach("conditions", vm.Status.Conditions)
		}
		return read, err
	}
}

// current returns an object as the API server has it.
func current[T client.Object](g *guestCloud, object T) T {
	g.t.Helper()
	read, err := storedIn(g, object)(g.t.Context())
	g.t.Expect(err).NotTo(HaveOccurred())
	return read
}

// edit changes an object as a user does.
func edit[T client.Object](g *guestCloud, object T, change func(T)) {
	g.t.Helper()
	g.t.Eventually(func() error {
		read := current(g, object)
		change(read)
		return g.env.Client.Update(g.t.Context(), read)
	}).Should(Succeed())
}

// guestReady waits for the result of the readiness probe.
func (g *guestCloud) guestReady(vm *pcapi.VM, status metav1.ConditionStatus, reason string) {
	g.t.Helper()
	g.t.Eventually(storedIn(g, vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, status, reason))
}

// image uploads the image that guests boot from.
func (g *guestCloud) image(name, path string) {
	g.t.Helper()
	var made struct{ ID string }
	services := g.as.services
	g.as.must(http.MethodPost, services["image"]+"/images", map[string]any{"name": name, "disk_format": "qcow2", "container_format": "bare"}, &made)
	file, err := os.Open(path)
	g.t.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	status, _, text, err := g.as.request(http.MethodPut, services["image"]+"/images/"+made.ID+"/file", file, "application/octet-stream")
	g.t.Expect(err).NotTo(HaveOccurred())
	g.t.Expect(status).To(Equal(http.StatusNoContent), "%s", text)
}

// routeTo lets this machine, which has the operator, reach the guests of a Network through its router.
func (g *guestCloud) routeTo(network *pcapi.Network) {
	g.t.Helper()
	var got struct {
		Router struct {
			Gateway struct {
				Addresses []struct {
					IP string `json:"ip_address"`
				} `json:"external_fixed_ips"`
			} `json:"external_gateway_info"`
		}
	}
	g.as.must(http.MethodGet, g.as.services["network"]+"/routers/"+current(g, network).Status.Router.ID, nil, &got)
	out, err := exec.CommandContext(g.t.Context(), "ip", "route", "replace", network.Spec.CIDR, "via", got.Router.Gateway.Addresses[0].IP).CombinedOutput()
	g.t.Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// serveNames makes this machine a DNS server at an address of the physical network. It knows one name.
func (g *guestCloud) serveNames(address string) {
	g.t.Helper()
	out, err := exec.CommandContext(g.t.Context(), "ip", "address", "replace", address+"/32", "dev", "lo").CombinedOutput()
	g.t.Expect(err).NotTo(HaveOccurred(), "%s", out)
	conn, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
	g.t.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := answerName(buffer[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
}

// answerName answers a query for names: with the address of the one that is known, else that the name does not
// exist. It returns nil for what is no query.
func answerName(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	switch q := m.Questions[0]; {
	case q.Name.String() != knownName+".":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(knownAddress).To4())},
		}}
	}
	answer, _ := m.Pack()
	return answer
}

// floatingAddresses returns the floating addresses of the project.
func (g *guestCloud) floatingAddresses() (addresses []string) {
	g.t.Helper()
	for _, floating := range admin().list("network", "floatingips", "project_id="+g.project.id) {
		addresses = append(addresses, fmt.Sprint(floating["floating_ip_address"]))
	}
	return addresses
}

// console returns the end of what the guest has printed.
func (g *guestCloud) console() string {
	var got struct{ Output string }
	status, _, text, err := g.as.request(http.MethodPost, g.as.services["compute"]+"/servers/"+g.server+"/action",
		strings.NewReader(`{"os-getConsoleOutput": {"length": 100}}`), "application/json")
	if err != nil || status != http.StatusOK || json.Unmarshal(text, &got) != nil {
		return fmt.Sprintf("no console: %d, %v: %s", status, err, text)
	}
	return got.Output
}

func sshAt(address string) string { return net.JoinHostPort(address, fmt.Sprint(sshPort)) }

// dial connects to an address, and returns why it cannot.
func dial(address string) error {
	conn, err := net.DialTimeout("tcp", address, dialTime)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// guest is a login at a guest.
type guest struct {
	t     *testkit.T
	login *sshlogin.Login
}

// logIn logs in to a guest that boots.
func (g *guestCloud) logIn(address string) guest {
	g.t.Helper()
	in := guest{t: g.t}
	g.t.Eventually(func(ctx context.Context) (err error) {
		in.login, err = sshlogin.Dial(ctx, address, g.key)
		return err
	}).Should(Succeed())
	g.t.Cleanup(in.login.Close)
	return in
}

// run runs a command in the guest, and returns what it prints, without spaces at the ends.
func (g guest) run(command string) string {
	g.t.Helper()
	out, err := g.login.Run(command)
	g.t.Expect(err).NotTo(HaveOccurred())
	return out
}

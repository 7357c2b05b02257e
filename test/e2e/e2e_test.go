// Package e2e_test installs the operator on a real cluster in every documented way,
// uses it as users do, and checks that nothing is left after its removal. The specs
// of a container are stages that follow each other: run a container as a whole.
//
// run.sh builds and pushes the images, bundles and the catalog of two versions, and
// passes their names in the environment.
package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

var (
	// version is the version under test; upgrades start from previous.
	version, previous = os.Getenv("E2E_VERSION"), os.Getenv("E2E_PREVIOUS")
	// images is the prefix of the names of all images.
	images = os.Getenv("E2E_IMAGES")
	// folder holds the bundles, by version.
	folder = os.Getenv("E2E_FOLDER")

	root    string
	cluster client.Client
)

// long is the label of containers that make test-e2e E2E=short leaves out.
var long = Label("long")

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The operator on a real cluster")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	Expect(version).NotTo(BeEmpty(), "these tests are run by make test-e2e")

	var err error
	root, err = testkit.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	config, err := ctrl.GetConfig()
	Expect(err).NotTo(HaveOccurred())
	scheme, err := testkit.Scheme()
	Expect(err).NotTo(HaveOccurred())
	cluster, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// operatorNamespace is the operator's namespace in all specs, as in the overlays.
const operatorNamespace = "private-cloud-operator-system"

var _ = AfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		dumpCluster(ctx)
	}
})

// dumpCluster prints the state of the cluster that helps to find out why a spec failed.
func dumpCluster(ctx context.Context) {
	for _, args := range []string{
		"get pods -A -o wide", "get csv,subscription,installplan,catalogsource -A", "get vms,clouds -A", "describe pods -n " + operatorNamespace,
		"events -A --types=Warning", "describe csv -n " + operatorNamespace,
		"logs -n olm -l app=catalog-operator --tail=30", "logs -n olm -l app=olm-operator --tail=30",
		"describe hpa,vmgroups -A", "get apiservices",
		"describe clustercatalog,clusterextension", "logs -n olmv1-system deployment/catalogd-controller-manager --tail=30",
		"logs -n olmv1-system deployment/operator-controller-controller-manager --tail=30",
	} {
		show(ctx, args)
	}
	pods, _ := tryKubectl(ctx, "", "get", "pods", "-n", operatorNamespace, "-o", "name")
	for pod := range strings.FieldsSeq(pods) {
		show(ctx, "logs --all-containers --prefix --tail=60 -n "+operatorNamespace+" "+pod)
	}
}

func show(ctx context.Context, args string) {
	output, err := tryKubectl(ctx, "", strings.Fields(args)...)
	GinkgoWriter.Printf("--- kubectl %s (%v)\n%s\n", args, err, tail(output, 150))
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// run runs a command in the project's root folder and returns its output.
func run(ctx context.Context, input, name string, args ...string) (string, error) {
	began := time.Now()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Stdin = root, strings.NewReader(input)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, output.String())
	}
	if took := time.Since(began); took > 5*time.Second {
		GinkgoWriter.Printf("%s %s: %s\n", filepath.Base(name), strings.Join(args, " "), took.Round(time.Second))
	}
	return output.String(), err
}

func tryKubectl(ctx context.Context, input string, args ...string) (string, error) {
	return run(ctx, input, os.Getenv("KUBECTL"), args...)
}

// kubectl runs kubectl and returns its output.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// apply applies manifests with kubectl.
func apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// operatorSDK runs operator-sdk as OPERATOR_SDK says: where public registries cannot
// be reached, the command includes a replacement for them.
func operatorSDK(ctx context.Context, args ...string) string {
	GinkgoHelper()
	command := append(strings.Fields(os.Getenv("OPERATOR_SDK")), args...)
	output, err := run(ctx, "", command[0], command[1:]...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// outputOf returns a function that runs kubectl, for Eventually.
func outputOf(ctx context.Context, args ...string) func() (string, error) {
	return func() (string, error) { return tryKubectl(ctx, "", args...) }
}

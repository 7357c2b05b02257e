// Package e2e_test installs the operator on a real cluster by every road that
// its users take, uses it as they do, and looks that nothing of it stays.
//
// run.sh makes and pushes the images, bundles and the catalog of two versions,
// and says in the environment where they are.
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
	// version is installed, and upgraded to from previous.
	version, previous = os.Getenv("E2E_VERSION"), os.Getenv("E2E_PREVIOUS")
	// images is what the names of all images begin with.
	images = os.Getenv("E2E_IMAGES")
	// folder holds the bundles, by version.
	folder = os.Getenv("E2E_FOLDER")

	root    string
	cluster client.Client
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator on a real cluster")
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

// home is the operator's namespace in all specs; that of the overlays.
const home = "private-cloud-operator-system"

var _ = AfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		explain(ctx)
	}
})

// explain prints what somebody would look at who has to find out what went wrong.
func explain(ctx context.Context) {
	for _, args := range []string{
		"get pods -A -o wide", "get csv,subscription,installplan,catalogsource -A", "get vms,clouds -A", "describe pods -n " + home,
		"events -A --types=Warning", "describe csv -n " + home,
		"logs -n olm -l app=catalog-operator --tail=30", "logs -n olm -l app=olm-operator --tail=30",
		"describe hpa,vmgroups -A", "get apiservices",
		"describe clustercatalog,clusterextension", "logs -n olmv1-system deployment/catalogd-controller-manager --tail=30",
		"logs -n olmv1-system deployment/operator-controller-controller-manager --tail=30",
	} {
		show(ctx, args)
	}
	pods, _ := tryKubectl(ctx, "", "get", "pods", "-n", home, "-o", "name")
	for pod := range strings.FieldsSeq(pods) {
		show(ctx, "logs --all-containers --prefix --tail=60 -n "+home+" "+pod)
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

// run runs a command in the project's root and returns what it printed.
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

// kubectl runs the real thing and returns what it printed.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// apply gives manifests to kubectl.
func apply(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// operatorSDK runs the real thing; where the public registries cannot be
// reached, behind what answers for them.
func operatorSDK(ctx context.Context, args ...string) string {
	GinkgoHelper()
	command := append(strings.Fields(os.Getenv("OPERATOR_SDK")), args...)
	output, err := run(ctx, "", command[0], command[1:]...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// asks returns what kubectl answers, for Eventually.
func asks(ctx context.Context, args ...string) func() (string, error) {
	return func() (string, error) { return tryKubectl(ctx, "", args...) }
}

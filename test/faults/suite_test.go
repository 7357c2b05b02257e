package faults

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

var shared *lab

func TestFaults(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Faults")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(converges)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	shared = &lab{folder: GinkgoT().TempDir()}
	root, err := testkit.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	shared.binary = filepath.Join(shared.folder, "manager")
	build := exec.Command("go", "build", "-o", shared.binary, "./cmd")
	build.Dir = root
	output, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))

	shared.env, err = testkit.Start(testkit.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(shared.env.Stop()).To(Succeed()) })
	scheme, err := testkit.Scheme()
	Expect(err).NotTo(HaveOccurred())
	shared.client, err = client.NewWithWatch(shared.env.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// Package behaviour_test shows on a real API server how the operator behaves.
// The operator and its clouds run in the process of the tests; every spec has a
// cloud and a namespace of its own.
package behaviour_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// operatorNamespace is where the Secrets of Clouds are.
const operatorNamespace = "private-cloud-system"

// callTimeout is how long the operator waits for a cloud's answer.
const callTimeout = 3 * time.Second

var (
	env      *testkit.Env
	operator *testkit.Manager
	// operatorConfig is the operator's own user.
	operatorConfig *rest.Config
	// defaultCloud is where the Cloud "default" leads to, which the operator makes itself.
	defaultCloud *mockcloud.Cloud
	// operatorLog is all that the operator logged, at the level of debugging.
	operatorLog = &locked{}
)

func TestBehaviour(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator on a real API server")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(glance)
	EnforceDefaultTimeoutsWhenUsingContexts()
	ctrl.SetLogger(zap.New(zap.WriteTo(io.MultiWriter(operatorLog, GinkgoWriter)), zap.Level(zapcore.DebugLevel)))

	var err error
	env, err = testkit.Start(testkit.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })

	operatorConfig, err = env.OperatorConfig(ctx, operatorNamespace)
	Expect(err).NotTo(HaveOccurred())
	var endpoint string
	defaultCloud, endpoint = serveCloud(mockcloud.Options{})
	door := newDoor()
	operator, err = testkit.StartManager(operatorConfig, setup.Options{
		Namespace: operatorNamespace, DefaultEndpoint: endpoint, CallTimeout: callTimeout, NameCheck: true,
	}, door.Serve)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(operator.Stop()).To(Succeed()) })
	openDoor(ctx, door, "operator", watched)
})

var _ = AfterEach(func(ctx SpecContext) {
	expectNoSecret(ctx)
	sweep(ctx)
})

// kubectl runs the real thing and returns what it printed.
func kubectl(ctx SpecContext, input string, args ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, input, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return output
}

func tryKubectl(ctx SpecContext, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(env.Assets, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig())
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

// locked is a buffer that many write to.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

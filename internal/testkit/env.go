package testkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// assetsVariable names the folder of etcd, kube-apiserver and kubectl.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Options are the options of Start. Most tests use the zero value.
type Options struct {
	// Scheme is the scheme of the client; Scheme() if nil.
	Scheme *runtime.Scheme
	// APIServerFlags replace flags of the API server. Keys are names without dashes.
	APIServerFlags map[string][]string
	// Audit is a user whose requests the API server logs; see Env.Audited. Empty for none.
	Audit string
	// WithoutCRDs starts the API server without the CRDs, for tests that install them.
	WithoutCRDs bool
}

// Env is a running API server. Stop it.
type Env struct {
	// Config is that of a user of group system:masters.
	Config *rest.Config
	// Client reads from the API server without a cache.
	Client client.Client
	// Assets is the folder of etcd, kube-apiserver and kubectl.
	Assets string

	server *envtest.Environment
	folder string
}

// Scheme returns a scheme with the kinds of Kubernetes and of this project.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, pcapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// processTimeout is how long etcd and the API server may take to start and to stop. The default of envtest, 20 seconds, is too short
// under load.
const processTimeout = 4 * time.Minute

// Start starts etcd and an API server on free ports of 127.0.0.1, and returns
// once the API server is ready and serves the CRDs.
func Start(options Options) (*Env, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	assets, err := findAssets(root)
	if err != nil {
		return nil, err
	}
	scheme := options.Scheme
	if scheme == nil {
		if scheme, err = Scheme(); err != nil {
			return nil, err
		}
	}

	env := &Env{Assets: assets, server: &envtest.Environment{
		BinaryAssetsDirectory: assets,
		Scheme:                scheme,
		ErrorIfCRDPathMissing: true,
		// Tests delete what they find, so they must never use the current cluster of the user.
		UseExistingCluster:       new(false),
		ControlPlaneStartTimeout: processTimeout,
		ControlPlaneStopTimeout:  processTimeout,
	}}
	if !options.WithoutCRDs {
		env.server.CRDDirectoryPaths = []string{filepath.Join(root, "config", "crd", "bases")}
	}
	flags := env.server.ControlPlane.GetAPIServer().Configure()
	// Watches that a killed manager left open must not delay the shutdown.
	flags.Set("shutdown-watch-termination-grace-period", "2s")
	for name, values := range options.APIServerFlags {
		flags.Set(name, values...)
	}

	if err := env.start(scheme, options); err != nil {
		return nil, errors.Join(err, env.Stop())
	}
	return env, nil
}

func (e *Env) start(scheme *runtime.Scheme, options Options) error {
	var err error
	if e.folder, err = os.MkdirTemp("", "testkit-"); err != nil {
		return fmt.Errorf("making a folder for files: %w", err)
	}
	if options.Audit != "" {
		if err := e.audit(options.Audit, e.server.ControlPlane.GetAPIServer()); err != nil {
			return err
		}
	}
	if e.Config, err = e.server.Start(); err != nil {
		return fmt.Errorf("starting etcd and kube-apiserver of %s: %w", e.Assets, err)
	}
	if e.Client, err = client.New(e.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := os.WriteFile(e.Kubeconfig(), e.server.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// Kubeconfig is the path of a file with the credentials of Config, for kubectl and
// for managers that are processes of their own. Stop removes the file.
func (e *Env) Kubeconfig() string {
	return filepath.Join(e.folder, "kubeconfig")
}

// Stop ends both processes and removes their data.
func (e *Env) Stop() error {
	var folder error
	if e.folder != "" {
		folder = os.RemoveAll(e.folder)
	}
	return errors.Join(e.server.Stop(), folder)
}

// ModuleRoot returns the folder of go.mod, searched from the working folder up; go
// test sets the working folder to that of the package. runtime.Caller has no paths
// under -trimpath.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for go.mod: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no go.mod in or above %s", start)
		}
	}
}

// findAssets returns the folder that the environment names, else the one that an
// earlier make test left in bin/, so that go test works without the variable.
func findAssets(root string) (string, error) {
	folder := os.Getenv(assetsVariable)
	if folder == "" {
		folder = filepath.Join(root, "bin", "k8s", "current")
	}
	missing := slices.DeleteFunc([]string{"etcd", "kube-apiserver", "kubectl"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("no %v in %s: run through make test, or export %s=$(hack/kube-assets.sh)",
			missing, folder, assetsVariable)
	}
	return folder, nil
}

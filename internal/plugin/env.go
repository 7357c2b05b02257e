// Package plugin holds what the commands of the kubectl plugin share. Each command is a
// package below it, and package root puts them together.
//
//	env.go       flags, and the client of the API server
//	errors.go    what users can do about errors, and exit codes
//	served.go    whether the operator of the cluster is there, and old
//	output.go    tables and JSON
//	printable.go no terminal sequences in the output
//	confirm.go   questions on a terminal
//	complete.go  proposals for the shell
//	pages.go     lists of many objects
package plugin

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// requestsPerSecond bounds the requests to the API server.
const requestsPerSecond = 50

// dialTimeout bounds the time until a connection to the API server is there, if
// --request-timeout does not allow more.
const dialTimeout = 30 * time.Second

// Env is what the commands share: streams, the flags of kubectl, and the version.
type Env struct {
	genericiooptions.IOStreams
	Config  *genericclioptions.ConfigFlags
	Version string
	// Connect returns a client of the API server. Tests replace it.
	Connect func(*Env) (client.Client, error)
	// Terminal reports whether a person answers at In. Tests replace it.
	Terminal func(io.Reader) bool

	// interrupted is closed when the command is to end, nil for never.
	interrupted <-chan struct{}
}

// NewEnv returns an Env with the flags that kubectl has.
func NewEnv(streams genericiooptions.IOStreams, version string) *Env {
	return &Env{
		IOStreams: printable(streams), Config: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag(), Version: version,
		Connect: connect, Terminal: isTerminal,
	}
}

// RESTConfig returns how to reach the API server.
func (e *Env) RESTConfig() (*rest.Config, error) {
	config, err := e.Config.ToRESTConfig()
	if err != nil {
		return nil, &kubeconfigError{err}
	}
	if err := e.namesCluster(); err != nil {
		return nil, err
	}
	config.UserAgent = "kubectl-privatecloud/" + e.Version
	config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
	if e.interrupted != nil {
		dialer := &net.Dialer{Timeout: max(dialTimeout, config.Timeout)}
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return e.dial(ctx, dialer, network, address)
		}
	}
	return config, nil
}

// dial connects, and closes the connection when the command is interrupted: discovery has
// no context, and would go on for minutes with an API server that does not answer.
func (e *Env) dial(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialed := make(chan struct{})
	defer close(dialed)
	go func() {
		select {
		case <-e.interrupted:
			cancel()
		case <-dialed:
		}
	}()
	connection, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	go func() {
		<-e.interrupted
		_ = connection.Close()
	}()
	return connection, nil
}

// namesCluster fails if neither flags nor a kubeconfig nor a pod name a cluster:
// client-go would use localhost:8080.
func (e *Env) namesCluster() error {
	raw, err := e.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return &kubeconfigError{err}
	}
	if len(raw.Clusters) == 0 && *e.Config.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return errNoCluster
	}
	return nil
}

// Clients returns a client of the API server for what controller-runtime has no client for, and
// how to reach it.
func (e *Env) Clients() (*kubernetes.Clientset, *rest.Config, error) {
	config, err := e.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return clients, config, nil
}

// Client returns a client that reads from and writes to the API server.
func (e *Env) Client() (client.Client, error) { return e.Connect(e) }

// Scheme returns the kinds that the client knows.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, pcapi.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

func connect(e *Env) (client.Client, error) {
	config, err := e.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return c, nil
}

// Namespace returns the namespace of --namespace or of the kubeconfig.
func (e *Env) Namespace() (string, error) {
	namespace, _, err := e.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", &kubeconfigError{err}
	}
	return namespace, nil
}

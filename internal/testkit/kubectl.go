package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubectl runs kubectl in the module's root folder, as a user of group
// system:masters, and returns what it printed. The error has the output, too.
func (e *Env) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(e.Assets, "kubectl"), args...)
	command.Dir, command.Stdin = root, strings.NewReader(input)
	command.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig())
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// WriteKubeconfig writes a kubeconfig file for one cluster and one user.
func WriteKubeconfig(path string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["test"], config.AuthInfos["test"] = cluster, user
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

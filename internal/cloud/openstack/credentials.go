package openstack

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Identifier is the id or the name of a user, a project or a domain. The id is used if both
// are given.
type Identifier struct {
	ID, Name string
}

// Credentials are an application credential, the password of a user, or a token. They show
// no secret however they are printed, logged or encoded.
type Credentials struct {
	// ApplicationCredentialID needs no user. ApplicationCredentialName needs UserID, or
	// Username and UserDomain.
	ApplicationCredentialID     string
	ApplicationCredentialName   string
	ApplicationCredentialSecret string
	// UserID is used in place of Username and UserDomain.
	UserID     string
	Username   string
	UserDomain Identifier
	Password   string
	// Token is for a project, and was issued outside the operator, which neither renews nor
	// revokes it.
	Token string
	// Project is what a password is for. An application credential and a token belong to a
	// project, which must be this one if it is given.
	Project Identifier
	// ProjectDomain is that of a Project without id.
	ProjectDomain Identifier
}

// String returns what kind of credentials these are.
func (c Credentials) String() string {
	switch {
	case c.ApplicationCredentialSecret != "":
		return "application credential " + transport.Redacted
	case c.Password != "":
		return "username and password " + transport.Redacted
	case c.Token != "":
		return "token " + transport.Redacted
	default:
		return "none"
	}
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// Format covers the verbs that ask neither String nor GoString, such as %d.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalLog is String, for logr.
func (c Credentials) MarshalLog() any { return c.String() }

// MarshalText is String, for JSON and YAML.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Validate returns why nobody can log in with the credentials; nil if somebody may.
func (c Credentials) Validate() error {
	_, err := c.cleaned()
	return err
}

// cleaned removes the line end that files and `echo` leave in a Secret, and refuses
// credentials that cannot work.
func (c Credentials) cleaned() (Credentials, error) {
	for _, value := range []*string{&c.ApplicationCredentialID, &c.ApplicationCredentialSecret, &c.Username, &c.Password, &c.Token} {
		*value = strings.TrimRight(*value, "\r\n")
	}
	application := c.ApplicationCredentialID != "" || c.ApplicationCredentialName != "" || c.ApplicationCredentialSecret != ""
	password := c.Password != "" || c.hasUser() && !application
	switch {
	case application && password:
		return c, errors.New("it holds both an application credential and a username or password; give one of the two")
	case c.Token != "" && (application || password):
		return c, errors.New("it holds a token and other credentials; give one of them")
	case application:
		return c, c.checkApplication()
	case password && (!c.hasUser() || c.Password == ""):
		return c, errors.New("username and password go together: one of them is missing")
	case !password && c.Token == "":
		return c, errors.New("it holds neither clouds.yaml, nor applicationCredentialId and applicationCredentialSecret, nor username and password")
	}
	return c, nil
}

func (c Credentials) hasUser() bool { return c.UserID != "" || c.Username != "" }

// checkApplication returns what an application credential lacks.
func (c Credentials) checkApplication() error {
	switch {
	case c.ApplicationCredentialSecret == "", c.ApplicationCredentialID == "" && c.ApplicationCredentialName == "":
		return errors.New("applicationCredentialId and applicationCredentialSecret go together: one of them is missing")
	case c.ApplicationCredentialID == "" && !c.hasUser():
		return errors.New("the name of an application credential needs the user that it belongs to: give its id, or the user")
	}
	return nil
}

// advice returns what to check when the credentials are refused.
func (c Credentials) advice() string {
	switch {
	case c.Token != "":
		return "the cloud refuses the token: it has ended or was revoked. Put another one into the Secret, or an application credential, which does not end"
	case c.ApplicationCredentialSecret != "":
		return "the cloud refuses the application credential: check applicationCredentialId and applicationCredentialSecret in the Secret, or clouds.yaml"
	default:
		return "the cloud refuses the credentials: check username and password in the Secret, and project and domain in spec.openstack, or clouds.yaml"
	}
}

// secrets returns what must not be shown.
func (c Credentials) secrets() []string {
	return []string{c.ApplicationCredentialSecret, c.Password, c.Token}
}

// identity returns all by which a login differs from another one.
func (c Credentials) identity() []string {
	return []string{
		c.ApplicationCredentialID, c.ApplicationCredentialName, c.ApplicationCredentialSecret, c.UserID, c.Username, c.UserDomain.ID, c.UserDomain.Name,
		c.Password, c.Token, c.Project.ID, c.Project.Name, c.ProjectDomain.ID, c.ProjectDomain.Name,
	}
}

// options returns what gophercloud logs in with. It refuses a domain with both an id and a
// name, and one beside the id of a user or project.
func (c Credentials) options() tokens.AuthOptions {
	options := tokens.AuthOptions{
		ApplicationCredentialID: c.ApplicationCredentialID, ApplicationCredentialName: c.ApplicationCredentialName,
		ApplicationCredentialSecret: c.ApplicationCredentialSecret, Password: c.Password,
	}
	if c.ApplicationCredentialID != "" {
		options.ApplicationCredentialName = ""
		return options
	}
	if options.UserID = c.UserID; c.UserID == "" {
		options.Username, options.DomainID = c.Username, c.UserDomain.ID
		if c.UserDomain.ID == "" {
			options.DomainName = c.UserDomain.Name
		}
	}
	if c.Password == "" {
		return options
	}
	if options.Scope.ProjectID = c.Project.ID; c.Project.ID == "" {
		options.Scope.ProjectName, options.Scope.DomainID = c.Project.Name, c.ProjectDomain.ID
		if c.ProjectDomain.ID == "" {
			options.Scope.DomainName = c.ProjectDomain.Name
		}
	}
	return options
}

// projectIs reports whether Project and ProjectDomain identify a project; empty ones identify
// every project. Some identity services compare names without regard to case.
func (c Credentials) projectIs(project *tokens.Project) bool {
	if c.Project.ID != "" {
		return c.Project.ID == project.ID
	}
	return c.Project.Name == "" || strings.EqualFold(c.Project.Name, project.Name) && c.ProjectDomain.is(project.Domain)
}

// is reports whether i identifies a domain; an empty one identifies every domain.
func (i Identifier) is(domain tokens.Domain) bool {
	return i == Identifier{} || i.ID != "" && i.ID == domain.ID || i.ID == "" && strings.EqualFold(i.Name, domain.Name)
}

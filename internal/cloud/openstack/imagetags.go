package openstack

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// tagsPrefix begins a template that has tags of an image, separated by commas, instead of its name. No image has been used by
	// such a name: the image service would take the prefix for an operator.
	tagsPrefix = "tags:"
	// maxImageTags bounds the tags of a template. The image service joins a table for each.
	maxImageTags = 8
)

// findTagged returns the id of the active image that has all of these tags: the newest of the project, else the newest public one.
func (c *imageClient) findTagged(ctx context.Context, op, template string, tags []string) (string, *cloud.Error) {
	for i := range tags {
		tags[i] = strings.TrimSpace(tags[i])
	}
	slices.Sort(tags)
	switch tags = slices.Compact(tags); {
	case tags[0] == "":
		return "", refuse(op, cloud.Rejected, "%s has an empty tag: write %sTAG, or %sTAG,TAG", quote(template), tagsPrefix, tagsPrefix)
	case len(tags) > maxImageTags:
		return "", refuse(op, cloud.Rejected, "%s has %d tags: give at most %d", quote(template), len(tags), maxImageTags)
	}
	if id := c.ids.get(template); id != "" {
		return id, nil
	}
	project, err := c.session.project(ctx, op)
	if err != nil {
		return "", err
	}
	ofServers := 0
	for _, filter := range []url.Values{{"owner": {project}}, {"visibility": {"public"}}} {
		tagged, err := c.listTagged(ctx, op, tags, filter)
		if err != nil {
			return "", err
		}
		tagged = slices.DeleteFunc(tagged, func(n listedImage) bool { return !n.hasNameIn(project) })
		usable := slices.DeleteFunc(slices.Clone(tagged), listedImage.ofServer)
		ofServers += len(tagged) - len(usable)
		if len(usable) == 0 {
			continue
		}
		best := slices.MinFunc(usable, func(a, b listedImage) int { return a.compare(b, project) })
		c.ids.put(template, best.ID)
		c.names.put(best.ID, best.Name)
		c.needs.put(best.ID, best.needs())
		return best.ID, nil
	}
	if ofServers > 0 {
		return "", refuse(op, cloud.Rejected, "the images with the tags %s were made from servers, and cannot be used as templates", quote(strings.Join(tags, ", ")))
	}
	return "", refuse(op, cloud.Rejected, "no active image of the project, and no public one, has the tags %s: give an image the tags, or correct them",
		quote(strings.Join(tags, ", ")))
}

// listTagged returns images that have all of these tags and match a filter, the newest first.
func (c *imageClient) listTagged(ctx context.Context, op string, tags []string, filter url.Values) ([]listedImage, *cloud.Error) {
	var got struct {
		Images []listedImage `json:"images"`
	}
	filter["tag"] = tags
	filter.Set("status", "active")
	filter.Set("sort", "created_at:desc")
	filter.Set("limit", strconv.Itoa(pageSize))
	call := &call{
		about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images", query: filter, op: op, out: &got, limit: maxList,
	}
	if err := c.session.do(ctx, call); err != nil {
		err.Detail = "looking for an image with the tags " + quote(strings.Join(tags, ", ")) + ": " + err.Detail
		return nil, err
	}
	tagged := slices.DeleteFunc(got.Images, func(n listedImage) bool { return !n.hasTags(tags) })
	if slices.ContainsFunc(tagged, func(n listedImage) bool { return !isID(n.ID) }) {
		return nil, unreadable(call, "an image has no id")
	}
	return tagged, nil
}

// hasTags reports whether an image has all of these tags.
func (n listedImage) hasTags(tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(n.Tags, tag) })
}

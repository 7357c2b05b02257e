package cloud

// Image is the image or template that a server was made from.
type Image struct {
	// Name is empty where the cloud does not show it, at most 255 characters.
	Name string
	// ID is empty where the cloud has no ids of images, at most 128 characters.
	ID string
}

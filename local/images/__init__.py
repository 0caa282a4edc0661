"""The shipped images: built without a registry of images, and run as a kubelet runs their pods."""

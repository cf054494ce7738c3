"""One file a method; each turns a module and a minibatch into named loss terms."""

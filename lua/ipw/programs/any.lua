--- Any program or client: the variables that the usual libraries read.
return require "ipw.program" {
  name  = "any",
  about = "Any program that takes the model's address from its environment.",
}

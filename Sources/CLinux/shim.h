// Linux interfaces that Swift's Glibc module does not expose.
#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
